# bakeoff_room(NAME <room> DIR <dir> SOURCES a.cc ... [DEPS room|library ...] [TESTS a_test.cc ...] [TEST_DEPS ...])
#
# One static library per folder of src/ ("room"), named bakeoff_<room>, and one test program
# <room>_test for the tests that stand beside its sources. What tests call is optimised, their own code is not:
# it compiles a third faster; OPTIMISED_TESTS where they compute much themselves.
#
# The presets compile the sources of a room together (CMAKE_UNITY_BUILD): headers are parsed once for all of
# them. Sources of a room therefore share one unnamed namespace; APART lists those that cannot, as twins with
# the same local names. All presets have the same units, so that what the release binary cannot compile fails in
# every build; tests, which it leaves out, are compiled 16 at a time.
#
# A room is compiled quickly, with the options of BAKEOFF_COLD, unless it is HOT: it computes much, or is timed.
set(BAKEOFF_COLD -Og CACHE STRING "Options of rooms that are neither timed nor compute much")
function(bakeoff_room)
  cmake_parse_arguments(ROOM "OPTIMISED_TESTS;HOT" "NAME" "SOURCES;DEPS;TESTS;TEST_DEPS;APART" ${ARGN})
  set(target bakeoff_${ROOM_NAME})
  set_source_files_properties(${ROOM_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(${target} STATIC ${ROOM_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC ${ROOM_DEPS})
  target_compile_options(${target} PRIVATE ${BAKEOFF_WARNINGS})
  if(ROOM_HOT)
    bakeoff_precompile(${target})
  else()
    target_compile_options(${target} PRIVATE ${BAKEOFF_COLD})
    bakeoff_precompile(${target} COLD)
  endif()
  if(BAKEOFF_TESTS AND ROOM_TESTS)
    add_executable(${ROOM_NAME}_test ${ROOM_TESTS})
    target_link_libraries(${ROOM_NAME}_test PRIVATE ${target} ${ROOM_TEST_DEPS} GTest::gmock GTest::gtest_main)
    target_compile_options(${ROOM_NAME}_test PRIVATE ${BAKEOFF_WARNINGS})
    target_compile_definitions(${ROOM_NAME}_test PRIVATE BAKEOFF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    set_target_properties(${ROOM_NAME}_test PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
    if(NOT ROOM_OPTIMISED_TESTS)
      target_compile_options(${ROOM_NAME}_test PRIVATE -O0)
      bakeoff_precompile(${ROOM_NAME}_test TESTS)
    endif()
    bakeoff_gtests(${ROOM_NAME}_test)
  endif()
endfunction()

set(BAKEOFF_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  # g++ 12 reports these falsely: in std::variant, and in std::string behind a precompiled header.
  -Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread
  # Where sources are compiled together none of them is the main file, whose classes may have local types.
  -Wno-subobject-linkage)

# The compiler collects its garbage late: a unit takes 6 to 8% more memory and 6 to 10% less time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=1500000" "SHELL:--param ggc-min-expand=400")
endif()
