// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <millrace/formats/detail/src_code.hpp>

#include "support/paths.hpp"

/// The `.src` files of golden/sidecars and what is in them.
namespace millrace::test {

/// Those that have an answer beside them.
inline constexpr const char* src_cases[] = {"none",  "typical",  "one_group", "crlf",    "skipped",
                                            "files", "by_turns", "shuffled",  "extremes"};

inline std::vector<std::byte> golden_src(const std::string& name) {
  return read_bytes(golden("sidecars/" + name + ".src"));
}

struct src_answer {
  std::vector<std::string> names;
  std::vector<formats::source_place> places;
};

inline src_answer read_src_answer(const std::string& name) {
  std::istringstream lines(read_text(golden("sidecars/" + name + ".tsv")));
  src_answer answer;
  std::string line;
  std::getline(lines, line);
  if (name != "none") {  // an empty line would be one input without a name
    line += '\t';
    for (std::size_t tab = 0; (tab = line.find('\t')) != std::string::npos;) {
      answer.names.push_back(line.substr(0, tab));
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
