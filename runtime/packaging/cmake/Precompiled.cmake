# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: one for each kind of code (programs, tools, test), with and without json.
# Files compile without them, too (-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON).
#
# kind      header                          optimisation in a release build
# programs  dmt/base/libraries/programs.h   -O2
# tools     dmt/base/libraries/programs.h   -O1, a quarter less time than -O2: not on a server's way
# test      tests/libraries/test.h          -O1
# <kind>_json has nlohmann/json.hpp as well; each file that sees that pays for its members' bodies.

function(crane_optimise target kind)
  if(NOT kind MATCHES "^programs")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# gcc 12 warns of its own std::string (PR 105329) when that comes from a precompiled header. Its
# garbage collector would go through the 100 MB of the header: no file needs it below 1 GB.
add_library(crane_precompiled INTERFACE)
if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(crane_precompiled INTERFACE -fpch-preprocess -Wno-array-bounds
    -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict --param=ggc-min-heapsize=524288)
endif()

function(crane_precompile kind header)
  # The target that owns a header wants a file to compile.
  set(empty ${PROJECT_BINARY_DIR}/precompiled/${kind}.cc)
  if(NOT EXISTS ${empty})
    file(WRITE ${empty} "")
  endif()
  add_library(crane_pch_${kind} OBJECT EXCLUDE_FROM_ALL ${empty})
  target_link_libraries(crane_pch_${kind} PRIVATE crane::code crane_precompiled)
  crane_optimise(crane_pch_${kind} ${kind})
  target_precompile_headers(crane_pch_${kind} PRIVATE ${PROJECT_SOURCE_DIR}/${header})
endfunction()

crane_precompile(programs dmt/base/libraries/programs.h)
crane_precompile(programs_json dmt/base/libraries/json.h)
crane_precompile(tools dmt/base/libraries/programs.h)
crane_precompile(tools_json dmt/base/libraries/json.h)
if(CRANE_TESTS)
  crane_precompile(test tests/libraries/test.h)
  crane_precompile(test_json tests/libraries/test_json.h)
endif()

# Which of the sources include json. A file that begins to is only slower until the next configure.
function(crane_with_json result)
  set(found)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} line LIMIT_COUNT 1 REGEX "#include <nlohmann/json\\.hpp>")
    if(line)
      list(APPEND found ${source})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Compiles sources into a target: crane_sources(<target> <kind> <libraries> <source>...); an empty
# kind is programs. Sources with json are objects of their own, because a target has one precompiled
# header.
function(crane_sources target kind libraries)
  if(NOT kind)
    set(kind programs)
  endif()
  crane_with_json(json ${ARGN})
  set(plain ${ARGN})
  list(REMOVE_ITEM plain ${json})
  target_link_libraries(${target} PRIVATE crane_precompiled)
  crane_optimise(${target} ${kind})
  if(NOT plain)
    target_sources(${target} PRIVATE ${json})
    target_precompile_headers(${target} REUSE_FROM crane_pch_${kind}_json)
    return()
  endif()
  target_sources(${target} PRIVATE ${plain})
  target_precompile_headers(${target} REUSE_FROM crane_pch_${kind})
  if(json)
    add_library(${target}_json OBJECT ${json})
    # Libraries of ours have no flags beyond crane::code's, and may use each other.
    list(FILTER libraries INCLUDE REGEX "^PkgConfig::")
    target_link_libraries(${target}_json PRIVATE crane::code crane_precompiled ${libraries})
    crane_optimise(${target}_json ${kind})
    target_precompile_headers(${target}_json REUSE_FROM crane_pch_${kind}_json)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_json>)
  endif()
endfunction()
