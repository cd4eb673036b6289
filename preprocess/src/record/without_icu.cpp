// SPDX-License-Identifier: Apache-2.0
// Replaces sentence_splitter.cpp in a build without ICU.
#include <millrace/error.hpp>

#include "record/sentence_splitter.hpp"

namespace millrace::preprocess {

struct sentence_splitter::state {};

sentence_splitter::sentence_splitter(std::string_view language, bool, std::size_t) {
  (void)locale_of_language(language);
  throw config_error(
      "--split-sentences: this build of millrace has no ICU, which finds the ends of sentences; "
      "install libicu-dev and rebuild, or write each text as a list of its sentences");
}

sentence_splitter::sentence_splitter(sentence_splitter&&) noexcept = default;
sentence_splitter::~sentence_splitter() = default;

void sentence_splitter::split(std::string_view, std::vector<std::string_view>& sentences) {
  sentences.clear();
}

std::size_t sentence_splitter::split_front(std::string_view, std::vector<std::string_view>&) {
  return 0;
}

std::string icu_version() {
  return {};
}

}  // namespace millrace::preprocess
