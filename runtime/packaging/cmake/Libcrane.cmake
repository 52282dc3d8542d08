# SPDX-License-Identifier: Apache-2.0
# libcrane.so, and its files as a library for their unit tests.

# The export list comes from the tables of the wrappers, so they cannot drift apart. The public
# hints (crane_*) are C functions; C++ names never start that way.
set(tables)
foreach(table IN ITEMS interposed interposed_hosts interposed_terminals interposed_machine)
  list(APPEND tables ${CMAKE_CURRENT_SOURCE_DIR}/preload/ground/${table}.def)
endforeach()
set(map ${PROJECT_BINARY_DIR}/libcrane.map)
set(row [[s/^INTERPOSE[A-Z_]*\( *[a-z_]+ *, *([A-Za-z0-9_]+).*/\1;/p]])
add_custom_command(OUTPUT ${map}
  COMMAND echo "{ global: crane_*;" > ${map}
  COMMAND sed -nE "${row}" ${tables} >> ${map}
  COMMAND echo "local: *; };" >> ${map}
  DEPENDS ${tables} VERBATIM COMMENT "Generating libcrane.map")

# It lives in processes of others: no exceptions, no RTTI, no guard variables, no libstdc++, never a
# sanitizer; on a thread's smallest stack (scratch.h). The same flags in every variant.
crane_glob(sources preload/*/*.cc ../dmt/*.cc ../dmt/base/*.cc ../dmt/sequence/*.cc
  EXCEPT attach/interpose.cc dmt/base/result.cc)  # an Error holds a std::string
add_library(libcrane_objects OBJECT ${sources})
set_target_properties(libcrane_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_definitions(libcrane_objects PUBLIC CRANE_PRELOAD=1)
target_compile_options(libcrane_objects PUBLIC -O2 -fvisibility=hidden -fno-exceptions -fno-rtti
  -fno-threadsafe-statics -ftls-model=initial-exec -ffunction-sections -fdata-sections
  -Wframe-larger-than=1536)
target_link_libraries(libcrane_objects PUBLIC crane::common)
# Two thirds of the time of such a small file are the standard library's headers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(libcrane_objects PRIVATE -fpch-preprocess)
endif()
target_precompile_headers(libcrane_objects PRIVATE <algorithm> <array> <atomic> <cstring> <span>
  <string_view>)

# The exported stubs would interpose in the unit tests themselves: they belong to libcrane.so alone.
add_library(libcrane SHARED preload/attach/interpose.cc ${map})
set_target_properties(libcrane PROPERTIES OUTPUT_NAME crane DEFINE_SYMBOL "" LINKER_LANGUAGE C
  LINK_DEPENDS ${map})
target_link_options(libcrane PRIVATE LINKER:--version-script=${map}
  LINKER:-z,now,-z,relro,-z,initfirst,--no-undefined,--gc-sections)
target_link_libraries(libcrane PRIVATE libcrane_objects)

# The unit tests link the same objects; a sanitizer wants its own.
if(CRANE_SANITIZERS)
  crane_library(preload SOURCES preload/*/*.cc EXCEPT attach/interpose.cc USES crane::dmt)
else()
  add_library(crane_preload STATIC)
  add_library(crane::preload ALIAS crane_preload)
  set_target_properties(crane_preload PROPERTIES OUTPUT_NAME preload)
  target_link_libraries(crane_preload PRIVATE libcrane_objects PUBLIC crane::dmt)
endif()

# Linked as C, without the libraries that CMake adds for objects of C++ (this folder's value alone).
set(CMAKE_CXX_IMPLICIT_LINK_LIBRARIES)
set(CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
