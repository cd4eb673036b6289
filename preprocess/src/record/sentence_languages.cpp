// SPDX-License-Identifier: Apache-2.0
#include "record/sentence_languages.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "record/sentence_splitter.hpp"

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
  throw config_error(
      fmt::format("--lang {}: expected one of {} (a language that is not among them is split by "
                  "the rules of english, but for its abbreviations)",
                  language, names));
}

std::vector<std::string_view> sentence_languages() {
  std::vector<std::string_view> names;
  for (const entry& each : languages) names.push_back(each.first);
  return names;
}

std::string_view sentence_splitter_words() {
  return "--split-sentences makes each sentence a sequence of its document, in one pass, and "
         "writes\n"
         "PREFIX_KEY_sentence.bin and .idx. Sentences end where ICU ends them, not where "
         "Megatron's\n"
         "NLTK does:\n"
         "  - ICU goes by the rules of Unicode (UAX 29) and by CLDR's list of a language's\n"
         "    abbreviations (Mr., Mrs.); NLTK's models have learnt abbreviations, words that "
         "start\n"
         "    sentences and words that go together from newspapers. They differ mostly behind\n"
         "    abbreviations, initials and numbers with a period.\n"
         "  - ICU also knows the full stops of Chinese, Japanese, Hindi and others, and ends a\n"
         "    sentence behind them without a space.\n"
         "  - An abbreviation at the end of a line ends the sentence.\n"
         "  - Long texts are not cut after each 1,000,000 characters.\n"
         "As with Megatron, a line end alone ends no sentence, and the white space between two\n"
         "sentences is dropped; --keep-newlines leaves it at the end of the first of them.\n";
}

}  // namespace millrace::preprocess
