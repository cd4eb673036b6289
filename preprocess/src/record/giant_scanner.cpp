// SPDX-License-Identifier: Apache-2.0
#include "record/giant_scanner.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "record/json_scanner.hpp"
#include "record/wanted_texts.hpp"

namespace millrace::preprocess {
namespace {

/// Stores a key of the record, but only if the key is short enough to be a wanted key or to be
/// shown in a message.
class bounded_text {
 public:
  static constexpr bool is_kept = true;

  explicit bounded_text(std::size_t longest) : longest_(longest) {}

  const char* plain(const char* at, const char* end) {
    const char* const stop = detail::no_text::plain(at, end);
    add({at, static_cast<std::size_t>(stop - at)});
    return stop;
  }
  void put(char c) { add({&c, 1}); }
  void put_code_point(int c) {
    char bytes[4];
    add({bytes, static_cast<std::size_t>(detail::put_utf8(bytes, c) - bytes)});
  }

  void clear() {
    kept_.clear();
    too_long_ = false;
  }
  std::optional<std::string_view> get() const {
    return too_long_ ? std::nullopt : std::optional<std::string_view>(kept_);
  }

 private:
  void add(std::string_view more) {
    too_long_ = too_long_ || more.size() > longest_ - kept_.size();
    if (!too_long_) kept_ += more;
  }

  std::size_t longest_;
  std::string kept_;
  bool too_long_ = false;
};

std::size_t longest_of(std::span<const text_key> keys) {
  std::size_t longest = wanted_texts::longest_name;
  for (const text_key& key : keys) {
    for (const std::string& each : key.path) longest = std::max(longest, each.size());
  }
  return longest;
}

/// Collects the offsets of the wanted values. This is the `Record` argument of json_scanner.
class places {
 public:
  static constexpr bool keeps_texts = false;

  places(std::span<const text_key> keys, wanted_texts& wanted)
      : text(longest_of(keys)), wanted_(wanted) {}

  wanted_texts& wanted() { return wanted_; }
  void begin_text() { text.clear(); }
  std::optional<std::string_view> take_key() const { return text.get(); }

  bounded_text text;

 private:
  wanted_texts& wanted_;
};

}  // namespace

std::optional<record_fault> scan_giant_line(const line_range& line, std::span<const text_key> keys,
                                            std::size_t window_bytes,
                                            std::vector<giant_value>& values) {
  wanted_texts wanted({keys.begin(), keys.end()});
  wanted.start();
  detail::json_scanner scan(line_window(line, window_bytes), places(keys, wanted));
  line_window& window = scan.bytes();
  const bool valid = scan.document();
  // If the line has another fault, read the rest of the line: invalid_utf8 takes precedence, even
  // if the invalid bytes come later.
  while (!valid && !window.invalid()) {
    window.at = window.end;
    if (!window.refill()) break;
  }
  if (window.invalid()) {
    return record_fault{fault_kind::invalid_utf8, static_cast<std::size_t>(*window.invalid()),
                        "not UTF-8"};
  }
  if (!valid) return scan.fault(static_cast<std::size_t>(line.size_bytes()));
  if (auto fault = scan.fault_of_root()) return fault;
  if (auto fault = wanted.fault(scan.closing_brace())) return fault;
  values.clear();
  for (std::size_t key = 0; key < keys.size(); ++key) values.push_back({wanted.value_bytes(key)});
  return std::nullopt;
}

}  // namespace millrace::preprocess
