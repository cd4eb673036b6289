// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::preprocess {

/// Cuts texts into sentences at the boundaries of ICU's sentence iterator (UAX 29 with the
/// abbreviations of CLDR), for `--split-sentences`. For one thread.
///
/// What lies between the boundaries is Megatron's, which splits with NLTK: a line end alone ends
/// no sentence; white space between two sentences belongs to none of them, or under `keep_newlines`
/// to the first; white space at the start of a text belongs to its first sentence, and that at its
/// end to none. Where NLTK itself would cut is another matter: `sentence_splitter_words`.
class sentence_splitter {
 public:
  /// ICU counts bytes in 32 bits, so a longer text is walked through in windows of this size.
  static constexpr std::size_t usual_window_bytes = std::size_t{1} << 30;

  /// @param language       as `--lang` has it: one of sentence_languages()
  /// @param keep_newlines  `--keep-newlines`
  /// @param window_bytes   at least 8. Changes the boundaries of longer sentences alone
  /// @throws config_error  there is no such language, or this build has no ICU.
  sentence_splitter(std::string_view language, bool keep_newlines,
                    std::size_t window_bytes = usual_window_bytes);
  sentence_splitter(sentence_splitter&&) noexcept;
  ~sentence_splitter();

  /// Overwrites `sentences` with parts of `text`, in order; none is empty. A text of white space
  /// alone has none. Takes time in proportion to the text.
  ///
  /// @param text  valid UTF-8
  void split(std::string_view text, std::vector<std::string_view>& sentences);

  /// The same of a text that goes on behind what is at hand: appends the sentences at its front
  /// that split() would find there whatever follows. What is left is the front of the rest.
  ///
  /// @return bytes up to the start of what is left; 0 if no sentence is sure to have ended
  std::size_t split_front(std::string_view text, std::vector<std::string_view>& sentences);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The names that `--lang` takes, in order: those of NLTK's models.
std::vector<std::string_view> sentence_languages();

/// What `--help` says of `--split-sentences`: some lines on how it differs from Megatron's.
std::string_view sentence_splitter_words();

/// "72.1", or nothing in a build without ICU.
std::string icu_version();

}  // namespace millrace::preprocess
