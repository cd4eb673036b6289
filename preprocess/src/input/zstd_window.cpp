// SPDX-License-Identifier: Apache-2.0
#include "input/zstd_window.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "input/zstd_header.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

std::uint64_t in_mebibytes(std::uint64_t bytes) {
  return bytes / mebibyte + (bytes % mebibyte != 0 ? 1 : 0);
}

}  // namespace

std::optional<zstd_window> zstd_window_of(std::span<const std::byte> head) {
  const auto header = parse_zstd_header(head);
  if (!header) return std::nullopt;
  const std::uint64_t window = header->window_bytes;
  return zstd_window{window, std::min(window, header->text_bytes.value_or(window))};
}

std::string zstd_window_refusal(const zstd_window& window, std::uint64_t most_bytes) {
  if (window.memory_bytes <= most_bytes || window.window_bytes > most_zstd_window_bytes) return {};
  return fmt::format(
      "a zstd frame needs a window of {} MB, more than the {} MB allowed; pass --zstd-memory {} if "
      "there is enough memory, or recompress the file with a smaller zstd --long",
      in_mebibytes(window.memory_bytes), most_bytes / mebibyte, in_mebibytes(window.memory_bytes));
}

std::string zstd_window_damage(const zstd_window& window) {
  return fmt::format("a frame declares a window of {} MB, more than the {} MB of zstd --long=31",
                     in_mebibytes(window.window_bytes), in_mebibytes(most_zstd_window_bytes));
}

std::string zstd_memory_refusal(const zstd_window& window) {
  return fmt::format(
      "a zstd frame needs a window of {} MB, which the system cannot allocate; free memory or "
      "raise its limit (ulimit -v), or recompress the file with a smaller zstd --long",
      in_mebibytes(window.memory_bytes));
}

void expect_zstd_window(const zstd_window& window, std::uint64_t most_bytes,
                        std::string_view name) {
  const std::string refusal = zstd_window_refusal(window, most_bytes);
  if (!refusal.empty()) throw config_error(fmt::format("{}: {}", name, refusal));
}

}  // namespace millrace::preprocess
