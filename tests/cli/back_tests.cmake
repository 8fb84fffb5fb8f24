# Tests of cli's back, and the daemon that they play with.
set(HVD_CLI_BACK_TESTS
    clock_offset_test.cc console_sink_test.cc console_test.cc driver_beats_test.cc driver_epochs_test.cc driver_hello_test.cc driver_host_test.cc
    driver_stall_test.cc
    driver_state_abort_test.cc driver_state_test.cc driver_store_test.cc driver_timeline_test.cc frame_test.cc
    hvdrun_world.cc job_process_test.cc job_report_test.cc job_summary_test.cc output_lines_test.cc output_printer_test.cc rank_files_test.cc
    ssh_command_test.cc ssh_failure_test.cc ssh_words_test.cc stall_book_test.cc start_status_test.cc stuck_work_test.cc
    timeline_book_test.cc verdict_advice_test.cc verdict_test.cc word_colors_test.cc)
add_executable(fake_hvdd fake_hvdd.cc)
target_link_libraries(fake_hvdd PRIVATE hvd_flags hvd_link_a hvd_proto)
set_target_properties(fake_hvdd PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
# The test itself is made by whoever includes this file.
cmake_language(DEFER CALL add_dependencies test_cli fake_hvdd)
