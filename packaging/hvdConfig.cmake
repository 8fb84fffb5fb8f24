# SPDX-License-Identifier: Apache-2.0
# find_package(hvd) gives hvd::hvd: the library and its headers, for C and for C++17.
if(NOT TARGET hvd::hvd)
  get_filename_component(hvd_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(hvd::hvd SHARED IMPORTED)
  set_target_properties(hvd::hvd PROPERTIES
    IMPORTED_LOCATION "${hvd_prefix}/lib/libhvd.so"
    INTERFACE_INCLUDE_DIRECTORIES "${hvd_prefix}/include"
    INTERFACE_COMPILE_FEATURES "cxx_std_17")
  unset(hvd_prefix)
endif()
