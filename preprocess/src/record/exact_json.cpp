// SPDX-License-Identifier: Apache-2.0
#include "record/exact_json.hpp"

#include <simdjson.h>

#include <utility>

#include "input/json_text.hpp"

namespace millrace::preprocess {
namespace {

/// A line that is entirely in memory.
struct whole_line {
  explicit whole_line(std::string_view line)
      : at(line.data()), end(line.data() + line.size()), begin(line.data()) {}
  static constexpr bool refill() { return false; }
  std::size_t offset(const char* place) const { return static_cast<std::size_t>(place - begin); }

  const char* at;
  const char* end;
  const char* begin;
};

}  // namespace

// Collects the texts of wanted keys. This is the `Record` argument of json_scanner.
class exact_json::reading {
  /// Appends consecutive texts to the buffer, which parse() has made large enough.
  struct kept_text {
    static constexpr bool is_kept = true;
    const char* plain(const char* at, const char* line_end) {
      return detail::pass_plain<true>(at, line_end, end);
    }
    void put(char c) { *end++ = c; }
    void put_code_point(int c) { end = detail::put_utf8(end, c); }

    char* end;
  };

 public:
  static constexpr bool keeps_texts = true;

  reading(exact_json& json, char* room) : text{room}, json_(json) {}

  wanted_texts& wanted() { return json_.wanted_; }
  void begin_text() { start_ = text.end; }
  std::string_view taken_text() const {
    return {start_, static_cast<std::size_t>(text.end - start_)};
  }
  std::optional<std::string_view> take_key() {
    const std::string_view key = taken_text();
    text.end = start_;
    return key;
  }

  kept_text text;

 private:
  exact_json& json_;
  char* start_ = nullptr;
};

exact_json::exact_json(std::vector<std::string> keys) : wanted_(plain_keys(std::move(keys))) {}
exact_json::exact_json(std::span<const text_key> keys) : wanted_({keys.begin(), keys.end()}) {}

std::optional<record_fault> exact_json::parse(std::string_view line) {
  wanted_.start();
  if (!simdjson::validate_utf8(line.data(), line.size())) {
    return record_fault{fault_kind::invalid_utf8, detail::first_invalid_utf8(line), "not UTF-8"};
  }
  // Decoding never makes a string longer. Copying may write up to one block after it.
  char* const room = room_.of(line.size() + detail::block_bytes);
  detail::json_scanner scan(whole_line(line), reading(*this, room));
  if (!scan.document()) return scan.fault(line.size());
  if (auto fault = scan.fault_of_root()) return fault;
  return wanted_.fault(scan.closing_brace());
}

}  // namespace millrace::preprocess
