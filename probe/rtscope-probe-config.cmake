# find_package(rtscope-probe) gives the target rtscope::probe.
get_filename_component(_rtscope_lib "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
get_filename_component(_rtscope_prefix "${_rtscope_lib}" DIRECTORY)
# Where libraries lie in a folder of their architecture, headers are one level higher.
if(NOT EXISTS "${_rtscope_prefix}/include/rtscope")
  get_filename_component(_rtscope_prefix "${_rtscope_prefix}" DIRECTORY)
endif()
find_package(Threads REQUIRED)
if(NOT TARGET rtscope::probe)
  add_library(rtscope::probe SHARED IMPORTED)
  set_target_properties(rtscope::probe PROPERTIES
    IMPORTED_LOCATION "${_rtscope_lib}/librtscope-probe.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_rtscope_prefix}/include"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()
