// SPDX-License-Identifier: Apache-2.0
#include "record/sentence_splitter.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {

using entry = std::pair<std::string_view, std::string_view>;

constexpr std::array<entry, 19> languages = {{{"czech", "cs"},
                                              {"danish", "da"},
                                              {"dutch", "nl"},
                                              {"english", "en"},
                                              {"estonian", "et"},
                                              {"finnish", "fi"},
                                              {"french", "fr"},
                                              {"german", "de"},
                                              {"greek", "el"},
                                              {"italian", "it"},
                                              {"malayalam", "ml"},
                                              {"norwegian", "nb"},
                                              {"polish", "pl"},
                                              {"portuguese", "pt"},
                                              {"russian", "ru"},
                                              {"slovene", "sl"},
                                              {"spanish", "es"},
                                              {"swedish", "sv"},
                                              {"turkish", "tr"}}};

}  // namespace

std::string_view locale_of_language(std::string_view language) {
  const auto* found = std::ranges::find(languages, language, &entry::first);
  if (found != languages.end()) return found->second;
  std::string names;
  for (const entry& each : languages) {
    names += names.empty() ? "" : ", ";
    names += each.first;
  }
  throw config_error(fmt::format(
      "--lang {}: expected one of {} (for other languages, pass english: the rules are the "
      "same except for its list of abbreviations)",
      language, names));
}

std::vector<std::string_view> sentence_languages() {
  std::vector<std::string_view> names;
  names.reserve(languages.size());
  for (const entry& each : languages) names.push_back(each.first);
  return names;
}

std::string_view sentence_splitter_words() {
  return "--split-sentences makes each sentence one sequence of its document, in one pass, and "
         "writes\n"
         "PREFIX_KEY_sentence.bin and .idx. ICU finds the ends of sentences. Megatron uses NLTK, "
         "so the\n"
         "results differ:\n"
         "  - ICU follows the Unicode rules (UAX 29) and CLDR's list of abbreviations per "
         "language\n"
         "    (Mr., Mrs.). NLTK's models learned abbreviations, words that start sentences and "
         "words\n"
         "    that belong together from newspapers. Most differences occur after abbreviations,\n"
         "    initials and numbers with a period.\n"
         "  - ICU also knows the full stops of Chinese, Japanese, Hindi and other languages, and "
         "ends\n"
         "    a sentence after them even without a space.\n"
         "  - An abbreviation at the end of a line ends the sentence.\n"
         "  - Long texts are not cut after every 1,000,000 characters.\n"
         "As in Megatron, a line end alone does not end a sentence, and the white space between "
         "two\n"
         "sentences is dropped; --keep-newlines keeps it at the end of the first sentence.\n";
}

}  // namespace millrace::preprocess
