// SPDX-License-Identifier: Apache-2.0
#include "text/charsmap.hpp"

#include <cstring>

#include <millrace/error.hpp>
#include <millrace/formats/detail/utf8.hpp>

namespace millrace::tokenizer::detail {
namespace {

// SentencePiece looks at no more than this many matching rules, starting with the shortest.
constexpr std::size_t max_candidates = 32;

constexpr std::size_t unit_bytes = sizeof(std::uint32_t);

constexpr bool is_utf8_start(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

}  // namespace

charsmap::charsmap(std::string_view blob, std::uint64_t offset) {
  std::uint32_t trie_bytes = 0;
  if (blob.size() <= unit_bytes) throw format_error(offset, "the charsmap is truncated");
  std::memcpy(&trie_bytes, blob.data(), unit_bytes);
  if (trie_bytes >= blob.size() - unit_bytes || trie_bytes < 1024 || trie_bytes % 1024 != 0) {
    throw format_error(offset, "the trie of the charsmap has " + std::to_string(trie_bytes) +
                                   " bytes, expected a multiple of 1024 below its own " +
                                   std::to_string(blob.size()));
  }
  units_.resize(trie_bytes / unit_bytes);
  std::memcpy(units_.data(), blob.data() + unit_bytes, trie_bytes);
  replacements_ = blob.substr(unit_bytes + trie_bytes);
  if (replacements_.back() != '\0') {
    throw format_error(offset + blob.size(), "the last replacement of the charsmap has no end");
  }
  for (std::size_t at = 0; at < replacements_.size();) {
    const std::size_t size =
        formats::utf8_sequence_bytes(std::string_view(replacements_).substr(at));
    if (size == 0) {
      throw format_error(offset + unit_bytes + trie_bytes + at,
                         "a replacement of the charsmap is not UTF-8");
    }
    at += size;
  }

  // Every unit that a look-up can reach must be inside the array.
  const auto check = [&](bool good, std::size_t unit) {
    if (!good) {
      throw format_error(offset + unit_bytes * (unit + 1), "the charsmap points outside itself");
    }
  };
  const auto children_fit = [&](std::size_t unit) {
    return ((unit ^ distance_of(units_[unit])) | 0xFF) < units_.size();
  };
  check(label_of(units_[0]) == 0 && !has_leaf(units_[0]) && distance_of(units_[0]) != 0 &&
            children_fit(0),
        0);
  for (std::size_t i = 1; i < units_.size(); ++i) {
    const std::uint32_t unit = units_[i];
    if (label_of(unit) > 0xFF) {
      check(value_of(unit) < replacements_.size(), i);
      if (!is_utf8_start(replacements_[value_of(unit)])) {
        throw format_error(offset + unit_bytes * (i + 1),
                           "a replacement of the charsmap begins inside a character");
      }
    } else {
      check(children_fit(i), i);
      check(!has_leaf(unit) || label_of(units_[i ^ distance_of(unit)]) > 0xFF, i);
    }
  }
}

std::optional<charsmap::rule> charsmap::find(std::string_view text) const noexcept {
  if (units_.empty()) return std::nullopt;
  std::size_t longest = 0;
  std::uint32_t value = 0;
  std::size_t candidates = 0;
  std::uint32_t place = distance_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(text[i]);
    place ^= byte;
    const std::uint32_t unit = units_[place];
    if (label_of(unit) != byte) break;
    place ^= distance_of(unit);
    if (has_leaf(unit)) {
      if (++candidates > max_candidates) break;
      longest = i + 1;
      value = value_of(units_[place]);
    }
  }
  if (longest == 0) return std::nullopt;
  return rule{longest, replacements_.data() + value};
}

std::optional<charsmap::rule> charsmap::find_shortest(std::string_view text) const noexcept {
  if (units_.empty()) return std::nullopt;
  std::uint32_t place = distance_of(units_[0]);
  for (std::size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(text[i]);
    place ^= byte;
    const std::uint32_t unit = units_[place];
    if (label_of(unit) != byte) break;
    place ^= distance_of(unit);
    if (has_leaf(unit)) return rule{i + 1, replacements_.data() + value_of(units_[place])};
  }
  return std::nullopt;
}

bool charsmap::has_prefix(std::string_view prefix) const noexcept {
  if (units_.empty()) return false;
  std::uint32_t place = distance_of(units_[0]);
  for (const char c : prefix) {
    const std::uint32_t byte = static_cast<unsigned char>(c);
    place ^= byte;
    if (label_of(units_[place]) != byte) return false;
    place ^= distance_of(units_[place]);
  }
  return true;
}

}  // namespace millrace::tokenizer::detail
