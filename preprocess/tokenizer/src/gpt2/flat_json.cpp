// SPDX-License-Identifier: Apache-2.0
#include "gpt2/flat_json.hpp"

#include <algorithm>
#include <limits>

#include <millrace/formats/utf8.hpp>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view scalar_characters = "+-.0123456789Eaeflnrstu";  // numbers, true, null

class walker {
 public:
  explicit walker(std::string_view json) : json_(json) {}

  // Walks to entry number `entry`, or as far as the text is what it should be.
  std::size_t walk(std::size_t entry) {
    if (!take('{')) return at_;
    for (std::size_t i = 0;; ++i) {
      skip_space();
      if (i == entry || !take_string() || !take(':') || !take_scalar()) return at_;
      if (take('}')) break;
      if (!take(',')) return at_;
    }
    skip_space();
    return at_;
  }

 private:
  bool next_is(char c) const { return at_ < json_.size() && json_[at_] == c; }

  void skip_space() { at_ = std::min(json_.find_first_not_of(white_space, at_), json_.size()); }

  bool take(char c) {
    skip_space();
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  bool take_string() {
    if (!take('"')) return false;
    while (at_ < json_.size() && json_[at_] != '"') {
      const auto byte = static_cast<unsigned char>(json_[at_]);
      const std::size_t size = byte < 0x20 ? 0 : formats::utf8_sequence_bytes(json_.substr(at_));
      if (size == 0) return false;
      at_ += size;
      if (byte == '\\' && at_ < json_.size()) ++at_;  // the escaped character, perhaps a quote
    }
    return take('"');
  }

  bool take_scalar() {
    skip_space();
    if (next_is('"')) return take_string();
    const std::size_t from = at_;
    at_ = std::min(json_.find_first_not_of(scalar_characters, at_), json_.size());
    return at_ > from;
  }

  std::string_view json_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t flat_json_entry(std::string_view json, std::size_t entry) {
  return walker(json).walk(entry);
}

std::size_t flat_json_end(std::string_view json) {
  return walker(json).walk(std::numeric_limits<std::size_t>::max());
}

}  // namespace millrace::tokenizer::detail
