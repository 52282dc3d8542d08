# SPDX-License-Identifier: Apache-2.0
find_library(CRANE_RAPIDCHECK rapidcheck REQUIRED)
mark_as_advanced(CRANE_RAPIDCHECK)

# crane_test(<area> [LONG] SOURCES <pattern>... USES <library>...): the program test-<area>. Only
# `make test-long` runs one that is LONG.
function(crane_test area)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG" "" "SOURCES;USES")
  crane_program(test-${area} KIND test SOURCES ${arg_SOURCES} USES ${arg_USES})
  target_link_libraries(test-${area} PRIVATE ${CRANE_RAPIDCHECK})
  target_sources(test-${area} PRIVATE $<TARGET_OBJECTS:catch_main>)
  if(NOT arg_LONG)
    add_dependencies(tested test-${area})
  endif()
endfunction()
