// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace::formats {

/// A sidecar is an optional file next to PREFIX.bin and PREFIX.idx. Its name is the prefix and one
/// suffix. Megatron's merge_datasets ignores extra files only if their names have this form. Each
/// kind of sidecar has a page in formats/spec.
enum class sidecar : std::uint8_t { meta, sum, src, bad, mask, cuts, digests, duplicates };

inline constexpr std::array<sidecar, 8> all_sidecars = {
    sidecar::meta, sidecar::sum,  sidecar::src,     sidecar::bad,
    sidecar::mask, sidecar::cuts, sidecar::digests, sidecar::duplicates};

constexpr std::string_view suffix_of(sidecar which) noexcept {
  constexpr std::array<std::string_view, 8> suffixes = {
      ".meta", ".sum", ".src", ".bad", ".mask", ".cuts", ".digests", ".duplicates"};
  return suffixes[static_cast<std::size_t>(which)];
}

}  // namespace millrace::formats
