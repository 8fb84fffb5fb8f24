# The back of hvdrun: console, driver, spawner, verdict.
set(HVD_CLI_BACK
    clock_offset.cc console.cc console_outputs.cc console_sink.cc console_signals.cc driver.cc driver_beats.cc driver_console.cc driver_end.cc driver_epochs.cc driver_hello.cc
    driver_host.cc driver_launch.cc driver_link.cc driver_stall.cc driver_start.cc driver_state.cc driver_status.cc driver_store.cc driver_talk.cc
    driver_timeline.cc driver_timeline_asked.cc driver_want.cc file_limit.cc frame.cc job_report.cc job_summary.cc output_lines.cc
    output_printer.cc output_writer.cc rank_files.cc spawner.cc stall_book.cc stuck_work.cc ssh_command.cc ssh_failure.cc ssh_words.cc start_status.cc
    timeline_book.cc timeline_chrome.cc timeline_file.cc timeline_perfetto.cc verdict.cc verdict_advice.cc verdict_text.cc
    word_colors.cc)
