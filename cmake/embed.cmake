# bakeoff_embed(TARGET <library> SYMBOL <name> BASE <dir> FILES <relative paths>)
#
# Adds to TARGET a generated source defining, in namespace bakeoff::embedded, the function
#   const std::vector<File>& <name>();   // File{std::string_view path, std::string_view text}
# The bytes are taken in by the assembler, so a large file costs no compile time. Not part of a unity source, which
# would not be compiled again when a file changes; a precompiled header takes longer to load than all it includes.
# Labels are global and hidden: the linker for 64-bit ARM takes a local one for the beginning of its section.
function(bakeoff_embed)
  cmake_parse_arguments(E "" "TARGET;SYMBOL;BASE" "FILES" ${ARGN})
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${E_SYMBOL}.cc)
  set(text "#include \"base/embedded.h\"\n\n")
  set(rows "")
  set(index 0)
  set(paths "")
  foreach(file IN LISTS E_FILES)
    set(path ${E_BASE}/${file})
    list(APPEND paths ${path})
    set(label bakeoff_${E_SYMBOL}_${index})
    string(APPEND text "asm(\".section .rodata\\n.globl ${label}_begin, ${label}_end\\n.hidden ${label}_begin, ${label}_end\\n\"\n")
    string(APPEND text "    \"${label}_begin:\\n.incbin \\\"${path}\\\"\\n${label}_end:\\n.byte 0\\n.previous\\n\");\n")
    string(APPEND text "extern \"C\" [[gnu::visibility(\"hidden\")]] const char ${label}_begin[];\n")
    string(APPEND text "extern \"C\" [[gnu::visibility(\"hidden\")]] const char ${label}_end[];\n")
    string(APPEND rows "      {\"${file}\", {${label}_begin, static_cast<size_t>(${label}_end - ${label}_begin)}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  string(APPEND text "\nnamespace bakeoff::embedded {\nconst std::vector<File>& ${E_SYMBOL}() {\n  static const std::vector<File> files = {\n${rows}  };\n  return files;\n}\n}  // namespace bakeoff::embedded\n")
  file(CONFIGURE OUTPUT ${out} CONTENT "${text}" @ONLY)
  set_source_files_properties(${out} PROPERTIES OBJECT_DEPENDS "${paths}" SKIP_UNITY_BUILD_INCLUSION ON
    SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${E_TARGET} PRIVATE ${out})
endfunction()
