# Tests of ctest. How long one may take is said by scripts/run_ctest.py, for all alike: a net against hanging.
# BAKEOFF_TEST_SLOTS: how many of ctest's slots a test takes that computes; one that mostly waits takes 1, and so runs
# beside those (scripts/run_ctest.py has the number of slots).
set(BAKEOFF_TEST_SLOTS 2)
find_program(BAKEOFF_PYTHON3_NAME NAMES python3.11 python3 REQUIRED)
# The interpreter itself: a front of pyenv starts a dozen processes before it.
execute_process(COMMAND ${BAKEOFF_PYTHON3_NAME} -c "import sys; print(sys.executable, end='')"
  OUTPUT_VARIABLE BAKEOFF_PYTHON3 COMMAND_ERROR_IS_FATAL ANY)

# bakeoff_script_test(<name> <label> <seconds> COMMAND ...)   a test that is a script, run in the repository's root
#
# What takes longest starts first: <seconds> say it until ctest has measured it. Exit status 77 = skipped.
function(bakeoff_script_test name label seconds)
  add_test(NAME ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77 COST ${seconds}
    PROCESSORS ${BAKEOFF_TEST_SLOTS})
endfunction()

# bakeoff_gtests(<target> [CASES] [COST <seconds>] [LABEL <label>] [THROUGH <command>])
#
# A test for each suite of a program of GoogleTest, named <target without _test>.<suite>: a process for each case
# costs more than most cases take (CASES: a test for each case all the same). The cases of each stand in
# gtests/<name>.xml, where scripts/run_ctest.py counts them. Tests without COST mostly wait, or are short.
# THROUGH: the command that runs the program, with the program as its next word.
function(bakeoff_gtests target)
  cmake_parse_arguments(G "CASES" "LABEL;COST" "THROUGH" ${ARGN})
  string(REGEX REPLACE "_test$" "" name ${target})
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  set(start ${CMAKE_CURRENT_BINARY_DIR}/${target}_start.cmake)
  file(WRITE ${start} "if(EXISTS \"${list}\")\n  include(\"${list}\")\nelse()\n  add_test(${name}.not_built ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${start})
  set(properties LABELS unit)
  if(G_LABEL)
    set(properties LABELS ${G_LABEL})
  endif()
  if(G_COST)
    list(APPEND properties COST ${G_COST} PROCESSORS ${BAKEOFF_TEST_SLOTS})
  endif()
  list(JOIN properties " " properties)
  list(JOIN G_THROUGH " " through)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${target}> -DCASES=${G_CASES} "-DTHROUGH=${through}" -DNAME=${name} -DLIST=${list}
      -DPROPERTIES=${properties} -DRESULTS=${CMAKE_BINARY_DIR}/gtests -P ${PROJECT_SOURCE_DIR}/cmake/list_suites.cmake)
endfunction()
