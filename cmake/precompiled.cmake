# The standard headers that most files include, compiled once: one header for the program, one for the tests. A
# file still includes what it uses: the `tidy` preset builds without this.
#
# bakeoff_precompile(<target>)          what the program's sources share
# bakeoff_precompile(<target> COLD)     the same, for targets with the options of BAKEOFF_COLD
# bakeoff_precompile(<target> TESTS)    the same and GoogleTest
set(BAKEOFF_COMMON_HEADERS <algorithm> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional>
  <set> <string> <string_view> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)

function(_bakeoff_precompiled name)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_compile_options(${name} PRIVATE ${BAKEOFF_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARGN} fmt::fmt nlohmann_json::nlohmann_json)
endfunction()

_bakeoff_precompiled(bakeoff_precompiled)
target_precompile_headers(bakeoff_precompiled PRIVATE ${BAKEOFF_COMMON_HEADERS})
if(BAKEOFF_COLD STREQUAL "-O0")  # g++ takes a header of another level, but none with optimisation for -O0
  _bakeoff_precompiled(bakeoff_precompiled_cold)
  target_compile_options(bakeoff_precompiled_cold PRIVATE -O0)
  target_precompile_headers(bakeoff_precompiled_cold PRIVATE ${BAKEOFF_COMMON_HEADERS})
endif()
if(BAKEOFF_TESTS)
  _bakeoff_precompiled(bakeoff_precompiled_tests GTest::gmock)
  target_compile_options(bakeoff_precompiled_tests PRIVATE -O0)
  target_precompile_headers(bakeoff_precompiled_tests PRIVATE ${BAKEOFF_COMMON_HEADERS} <gtest/gtest.h>
    <gmock/gmock.h>)
endif()

function(bakeoff_precompile target)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  if("TESTS" IN_LIST ARGN)
    target_precompile_headers(${target} REUSE_FROM bakeoff_precompiled_tests)
  elseif("COLD" IN_LIST ARGN AND TARGET bakeoff_precompiled_cold)
    target_precompile_headers(${target} REUSE_FROM bakeoff_precompiled_cold)
  else()
    target_precompile_headers(${target} REUSE_FROM bakeoff_precompiled)
  endif()
endfunction()
