# SPDX-License-Identifier: Apache-2.0
# Test programs are strangers to Crane: plain C, nothing of ours on the command line, so they are no
# targets with usage requirements. tests/<folder>/x.c is <folder>/x in the build tree.
set(stranger_flags -O1 -g -Wall -Wextra -Wno-deprecated-declarations -pthread)
set(strangers)

function(crane_stranger source)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE name)
  cmake_path(GET source EXTENSION LAST_ONLY extension)
  cmake_path(REMOVE_EXTENSION name LAST_ONLY)
  set(compiler ${CMAKE_C_COMPILER} -std=gnu11)
  if(extension STREQUAL ".cc")
    set(compiler ${CMAKE_CXX_COMPILER} -std=c++20)
  endif()
  set(program ${PROJECT_BINARY_DIR}/${name})
  list(TRANSFORM ARGN PREPEND ${PROJECT_BINARY_DIR}/)
  set(builder ${CMAKE_CURRENT_SOURCE_DIR}/build_stranger.sh)
  add_custom_command(OUTPUT ${program}
    COMMAND ${builder} ${source} ${program} ${compiler} ${stranger_flags}
    DEPENDS ${source} ${builder} ${ARGN} DEPFILE ${program}.d VERBATIM COMMENT "Building ${name}")
  set(strangers ${strangers} ${program} PARENT_SCOPE)
endfunction()

# Libraries of these are in the folder, too: built with -shared, found beside them.
set(needs_soft_barrier_points interpose/crane_soft_barrier_library
  interpose/crane_soft_barrier_plugin)
set(needs_soft_barrier_points_off ${needs_soft_barrier_points})
set(needs_found_by_name interpose/crane_found_by_name_library)
set(needs_tsc_of_library interpose/crane_tsc_library)
set(needs_slices_of_library interpose/crane_slices_library)

crane_glob(sources interpose/*.c interpose/traps/*.c interpose/posix/*.c interpose/racy/*.c
  interpose/*.cc interpose/traps/*.cc e2e/*.c unit/*/*.c EXCEPT "crane_[a-z_]*.cc")
foreach(source IN LISTS sources)
  cmake_path(GET source STEM LAST_ONLY name)
  crane_stranger(${source} ${needs_${name}})
endforeach()
add_custom_target(strangers ALL DEPENDS ${strangers})

# The test cases of checkpoints run a server of their own.
set(servers ${strangers})
list(FILTER servers INCLUDE REGEX "/unit/checkpoint/")
add_custom_target(checkpoint_servers DEPENDS ${servers})
add_dependencies(test-checkpoint checkpoint_servers)
