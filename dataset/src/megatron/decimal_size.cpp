// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/decimal_size.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace millrace::dataset {

MILLRACE_INLINE bool is_beyond_one(std::string_view number) noexcept {
  if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  // The decimal exponent of the first nonzero digit, plus 1. For 0.5 it is 0, for 5 it is 1.
  const std::int64_t places = first < point ? point - first : point - first + 1;
  std::string_view power = number.substr(e);
  if (power.empty()) return places > 0;
  power.remove_prefix(power.size() > 1 && power[1] == '+' ? 2 : 1);
  std::int64_t exponent = 0;
  const char* const end = power.data() + power.size();
  const bool is_small = std::from_chars(power.data(), end, exponent).ec == std::errc();
  // Clamp exponents that do not fit. The limit is larger than the number of digits of any text.
  constexpr std::int64_t most = std::int64_t{1} << 62;
  if (!is_small) exponent = power.starts_with('-') ? -most : most;
  return std::clamp(exponent, -most, most) + places > 0;
}

}  // namespace millrace::dataset
