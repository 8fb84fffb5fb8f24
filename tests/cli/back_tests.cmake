# Tests of cli's back.
set(HVD_CLI_BACK_TESTS hvdrun_world.cc
    job_process_test.cc)
add_executable(fake_hvdd fake_hvdd.cc)
target_link_libraries(fake_hvdd PRIVATE hvd_flags hvd_link_a hvd_proto)
set_target_properties(fake_hvdd PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
