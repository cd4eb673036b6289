// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <millrace/formats/detail/src_code.hpp>

#include "support/paths.hpp"

/// Reads the `.src` files in golden/sidecars and their expected contents.
namespace millrace::test {

/// The names of the cases that have a file with expected contents.
inline constexpr const char* src_cases[] = {"none",  "typical",  "one_group", "crlf",     "skipped",
                                            "files", "by_turns", "shuffled",  "extremes", "rows"};

inline std::vector<std::byte> golden_src(const std::string& name) {
  return read_bytes(golden("sidecars/" + name + ".src"));
}

struct src_answer {
  std::vector<formats::src_input> inputs;  // those named .parquet are counted in rows
  std::vector<formats::source_place> places;
};

inline src_answer read_src_answer(const std::string& name) {
  std::istringstream lines(read_text(golden("sidecars/" + name + ".tsv")));
  src_answer answer;
  std::string line;
  std::getline(lines, line);
  if (name != "none") {  // an empty file means no inputs
    line += '\t';
    for (std::size_t tab = 0; (tab = line.find('\t')) != std::string::npos;) {
      const std::string input = line.substr(0, tab);
      answer.inputs.push_back({input, input.ends_with(".parquet") ? formats::src_unit::rows
                                                                  : formats::src_unit::bytes});
      line.erase(0, tab + 1);
    }
  }
  formats::source_place place;
  while (lines >> place.input >> place.line >> place.begin >> place.end) {
    answer.places.push_back(place);
  }
  return answer;
}

}  // namespace millrace::test
