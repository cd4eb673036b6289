// SPDX-License-Identifier: Apache-2.0
#include "record/record_parser.hpp"

#include <utility>

#include "record/exact_json.hpp"
#include "record/quick_json.hpp"

namespace millrace::preprocess {

struct record_parser::state {
  explicit state(std::span<const text_key> keys) : quick(keys), exact(keys) {}

  quick_json quick;
  exact_json exact;
  bool exactly = false;  // exact_json parsed the last line
};

record_parser::record_parser(std::span<const text_key> keys)
    : state_(std::make_unique<state>(keys)) {}
record_parser::record_parser(std::vector<std::string> keys)
    : record_parser(plain_keys(std::move(keys))) {}
record_parser::record_parser(record_parser&&) noexcept = default;
record_parser::~record_parser() = default;

std::optional<record_fault> record_parser::parse(std::string_view line) {
  state_->exactly = !state_->quick.parse(line);
  return state_->exactly ? state_->exact.parse(line) : std::nullopt;
}

std::span<const std::string_view> record_parser::texts(std::size_t key) const {
  return state_->exactly ? state_->exact.texts(key) : state_->quick.texts(key);
}

// quick_json leaves texts with lone surrogates to exact_json.
std::int64_t record_parser::lone_surrogates() const noexcept {
  return state_->exactly ? state_->exact.lone_surrogates() : 0;
}

}  // namespace millrace::preprocess
