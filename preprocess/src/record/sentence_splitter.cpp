// SPDX-License-Identifier: Apache-2.0
#include "record/sentence_splitter.hpp"

#include <algorithm>
#include <cassert>

#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/uversion.h>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_handle.hpp>

namespace millrace::preprocess {
namespace {

using break_handle = io::unique_handle<::UBreakIterator*, nullptr, ubrk_close>;
using text_handle = io::unique_handle<::UText*, nullptr, utext_close>;

// Returns whether `\s` in NLTK's patterns matches a character. This is Python's set of white space,
// which has U+001C to U+001F in addition to ICU's set.
bool is_space(UChar32 c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return u_isUWhiteSpace(c) != 0;
}

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Returns the character encoded by a complete UTF-8 sequence.
UChar32 character(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence.front());
  if (first < 0x80) return first;
  // The first byte of a longer sequence starts with one 1 bit per byte of the sequence. Clear these
  // bits.
  auto c = static_cast<UChar32>(first & (0x7FU >> sequence.size()));
  for (const char next : sequence.substr(1)) c = c << 6 | (next & 0x3F);
  return c;
}

UChar32 next_character(std::string_view text, std::size_t& at) {
  const std::size_t start = at++;
  while (at < text.size() && is_continuation(text[at])) ++at;
  return character(text.substr(start, at - start));
}

UChar32 previous_character(std::string_view text, std::size_t& at) {
  const std::size_t end = at--;
  while (at > 0 && is_continuation(text[at])) --at;
  return character(text.substr(at, end - at));
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  for (std::size_t next = at; next < text.size(); at = next) {
    if (!is_space(next_character(text, next))) break;
  }
  return at;
}

std::string_view without_spaces_behind(std::string_view text) {
  std::size_t end = text.size();
  for (std::size_t before = end; before > 0; end = before) {
    if (!is_space(previous_character(text, before))) break;
  }
  return text.substr(0, end);
}

// Returns whether `part` ends only because of a line end. ICU ends a part after every line end, but
// NLTK ends a sentence there only if a character such as a full stop precedes. (ICU's rule status
// would say why a part ends, but not while ICU filters abbreviations.)
bool ends_by_line_alone(std::string_view part, bool greek) {
  bool at_line_end = false;
  for (std::size_t at = part.size(); at > 0;) {
    const UChar32 c = previous_character(part, at);
    switch (u_getIntPropertyValue(c, UCHAR_SENTENCE_BREAK)) {
      case U_SB_SEP:
      case U_SB_CR:
      case U_SB_LF:
        at_line_end = true;
        continue;
      case U_SB_SP:
      case U_SB_CLOSE:
      case U_SB_EXTEND:
      case U_SB_FORMAT:
        if (!at_line_end) return false;
        continue;
      case U_SB_ATERM:
      case U_SB_STERM:
        return false;
      default:
        return at_line_end && !(greek && (c == ';' || c == 0x37E));  // Greek question marks
    }
  }
  return at_line_end;
}

// Returns the first `bytes` bytes of `text`, or up to 3 bytes fewer, so that the result ends at a
// character boundary.
std::string_view first_window(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && is_continuation(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

void expect_success(UErrorCode code, const char* call) {
  if (U_FAILURE(code)) throw error(fmt::format("ICU's {} fails: {}", call, u_errorName(code)));
}

}  // namespace

struct sentence_splitter::state {
  break_handle breaks;
  text_handle text;  // reopened for each window
  bool greek = false;
  bool keep_newlines = false;
  std::size_t window_bytes = 0;
  std::vector<std::size_t> ends;  // ends of the sentences in one window

  void find_boundaries(std::string_view window);
  void find_ends(std::string_view window, bool is_last);
  std::size_t append_sentences(std::string_view passage, std::vector<std::string_view>& to) const;
};

sentence_splitter::sentence_splitter(std::string_view language, bool keep_newlines,
                                     std::size_t window_bytes)
    : state_(std::make_unique<state>()) {
  assert(window_bytes >= 8 && window_bytes <= usual_window_bytes);
  // "ss=standard" selects the abbreviations that CLDR lists for the language.
  const std::string locale = std::string(locale_of_language(language)) + "@ss=standard";
  UErrorCode code = U_ZERO_ERROR;
  state_->breaks = break_handle(ubrk_open(UBRK_SENTENCE, locale.c_str(), nullptr, 0, &code));
  expect_success(code, "ubrk_open");
  state_->greek = language == "greek";
  state_->keep_newlines = keep_newlines;
  state_->window_bytes = window_bytes;
}

sentence_splitter::sentence_splitter(sentence_splitter&&) noexcept = default;
sentence_splitter::~sentence_splitter() = default;

void sentence_splitter::split(std::string_view text, std::vector<std::string_view>& sentences) {
  sentences.clear();
  text = without_spaces_behind(text);
  while (!text.empty()) {
    const std::string_view window = first_window(text, state_->window_bytes);
    state_->find_ends(window, window.size() == text.size());
    text.remove_prefix(state_->append_sentences(window, sentences));
  }
}

// Whether a sentence really ends at a boundary can depend on the text after it, up to the next full
// stop. So the last boundary found is uncertain, but all earlier boundaries are certain.
std::size_t sentence_splitter::split_front(std::string_view text,
                                           std::vector<std::string_view>& sentences) {
  state_->find_boundaries(first_window(text, state_->window_bytes));
  if (state_->ends.size() < 2) return 0;
  state_->ends.pop_back();
  return state_->append_sentences(text, sentences);
}

std::size_t sentence_splitter::state::append_sentences(std::string_view passage,
                                                       std::vector<std::string_view>& to) const {
  std::size_t start = 0;
  for (const std::size_t end : ends) {
    const std::string_view sentence = passage.substr(start, end - start);
    to.push_back(keep_newlines ? sentence : without_spaces_behind(sentence));
    start = end;
  }
  return start;
}

// Sets `ends` to the ends of the sentences in a window. In the last window of a text, the text
// after the last boundary is a sentence. In any other window, that text and the sentence before it
// are left to the next window, because the end of that sentence may depend on later text. But every
// window yields at least one sentence.
void sentence_splitter::state::find_ends(std::string_view window, bool is_last) {
  find_boundaries(window);
  if (is_last || ends.empty()) {
    ends.push_back(window.size());
  } else if (ends.size() > 1) {
    ends.pop_back();
  }
}

// Finds the sentence boundaries inside the window, and moves each boundary past the white space
// that follows it.
void sentence_splitter::state::find_boundaries(std::string_view window) {
  ends.clear();
  UErrorCode code = U_ZERO_ERROR;
  text = text_handle(utext_openUTF8(text.release(), window.data(),
                                    static_cast<std::int64_t>(window.size()), &code));
  expect_success(code, "utext_openUTF8");
  ubrk_setUText(breaks.get(), text.get(), &code);
  expect_success(code, "ubrk_setUText");

  std::size_t taken = skip_spaces(window, 0);  // leading white space is not a sentence
  auto start = static_cast<std::size_t>(ubrk_first(breaks.get()));
  for (std::int32_t next = ubrk_next(breaks.get()); next != UBRK_DONE;
       next = ubrk_next(breaks.get())) {
    const auto end = static_cast<std::size_t>(next);
    const std::string_view part = window.substr(start, end - start);
    start = end;
    if (end <= taken || end == window.size() || ends_by_line_alone(part, greek)) continue;
    taken = skip_spaces(window, end);
    if (taken == window.size()) break;
    ends.push_back(taken);
  }
}

std::string icu_version() {
  UVersionInfo version{};
  u_getVersion(version);
  return fmt::format("{}.{}", version[0], version[1]);
}

}  // namespace millrace::preprocess
