# SPDX-License-Identifier: Apache-2.0
# abseil for libhvd: static and hidden, since the user's process may have an abseil of its own. Debian's archives
# are made for programs (their thread-locals and references to the C library cannot be moved into a shared
# library), so the sources that Debian's libabsl-dev was built from are compiled again, against Debian's headers.
# scripts/setup fetches them. Without them, or with another abseil, libhvd needs abseil's shared libraries.
#
# Makes the target hvd_absl_inside.
set(source_version 20220623.1)  # of the sources that scripts/setup names; the headers must be of the same release

file(STRINGS /usr/include/absl/base/config.h release REGEX "define ABSL_LTS_RELEASE_VERSION")
string(REGEX MATCH "[0-9]+$" release "${release}")
find_file(HVD_ABSEIL_SOURCE abseil_${source_version}.orig.tar.gz NO_DEFAULT_PATH
          PATHS $ENV{XDG_CACHE_HOME}/hvd $ENV{HOME}/.cache/hvd)

add_library(hvd_absl_inside INTERFACE)
if(NOT HVD_ABSEIL_SOURCE OR NOT source_version MATCHES "^${release}")
  message(WARNING "libhvd will need abseil's shared libraries at run time: the sources of abseil ${source_version} are "
                  "not there, or are not those of /usr/include/absl. scripts/setup fetches them; "
                  "-DHVD_ABSEIL_SOURCE=FILE names them.")
  pkg_check_modules(HVD_ABSL_SHARED REQUIRED IMPORTED_TARGET absl_status absl_statusor absl_strings absl_str_format)
  target_link_libraries(hvd_absl_inside INTERFACE -Wl,--as-needed PkgConfig::HVD_ABSL_SHARED)
  return()
endif()

set(abseil ${CMAKE_CURRENT_BINARY_DIR}/abseil-${source_version})
if(NOT EXISTS ${abseil})
  file(ARCHIVE_EXTRACT INPUT ${HVD_ABSEIL_SOURCE} DESTINATION ${CMAKE_CURRENT_BINARY_DIR} PATTERNS "abseil-*/absl/*")
endif()
set(sources "")
foreach(folder base numeric strings status synchronization time debugging profiling)
  file(GLOB_RECURSE found RELATIVE ${abseil} ${abseil}/absl/${folder}/*.cc)
  list(APPEND sources ${found})
endforeach()
# What is not needed here, and what is abseil's own tests.
list(FILTER sources EXCLUDE REGEX "test|benchmark|_win32|gaussian|failure_signal|leak_check|periodic_sampler|\
sample_recorder|examine_stack|scoped_mock|scoped_set_env|log_severity|stack_consumption|cord_analysis|cord_buffer|\
sample_token|ostringstream|pow10_helper|str_replace|substitute|barrier|blocking_counter|notification|civil_time|format\\.cc")
list(TRANSFORM sources PREPEND ${abseil}/)
add_library(hvd_absl_compiled STATIC ${sources})
target_link_libraries(hvd_absl_inside INTERFACE hvd_absl_compiled)
