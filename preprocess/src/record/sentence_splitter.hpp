// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::preprocess {

/// Cuts texts into sentences at the boundaries of ICU's sentence iterator (UAX 29 with the
/// abbreviations of CLDR), for `--split-sentences`. Not thread-safe.
///
/// Line ends and white space are handled as in Megatron, which splits with NLTK. A line end alone
/// does not end a sentence. White space between two sentences is dropped, or with `keep_newlines`,
/// belongs to the first of them. White space at the start of a text belongs to the first sentence,
/// and white space at the end of a text is dropped. sentence_splitter_words() describes the
/// differences from NLTK.
class sentence_splitter {
 public:
  /// ICU uses 32-bit byte offsets, so a longer text is processed in windows of this size.
  static constexpr std::size_t usual_window_bytes = std::size_t{1} << 30;

  /// @param language       the value of `--lang`: one of sentence_languages()
  /// @param keep_newlines  the value of `--keep-newlines`
  /// @param window_bytes   at least 8; affects only how sentences longer than a window are cut
  /// @throws config_error  there is no such language, or this build has no ICU.
  sentence_splitter(std::string_view language, bool keep_newlines,
                    std::size_t window_bytes = usual_window_bytes);
  sentence_splitter(sentence_splitter&&) noexcept;
  ~sentence_splitter();

  /// Overwrites `sentences` with the sentences of `text`, in order. No sentence is empty. A text of
  /// only white space has no sentences. Takes linear time.
  ///
  /// @param text  valid UTF-8
  void split(std::string_view text, std::vector<std::string_view>& sentences);

  /// Splits the beginning of an incomplete text. Appends only the leading sentences that split()
  /// would find whatever text follows. The caller must later pass the remainder again, together
  /// with more text.
  ///
  /// @return offset of the remainder in `text`; 0 if no sentence was appended
  std::size_t split_front(std::string_view text, std::vector<std::string_view>& sentences);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The names that `--lang` accepts, in alphabetical order: the languages of NLTK's models.
std::vector<std::string_view> sentence_languages();

/// The lines of `--help` that describe how `--split-sentences` differs from Megatron's splitting.
std::string_view sentence_splitter_words();

/// The version of ICU, such as "72.1"; empty in a build without ICU.
std::string icu_version();

/// Returns the ICU locale of a language that `--lang` names, such as "de" for "german".
///
/// @throws config_error  there is no such language; the message lists the available ones.
std::string_view locale_of_language(std::string_view language);

}  // namespace millrace::preprocess
