// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/detail/src_encoder.hpp>
#include <millrace/formats/sum.hpp>

/// Encodes whole sidecars (`.mask` and `.src` files) in memory. In contrast, the programs of
/// millrace write these files piece by piece.
namespace millrace::test {

/// Encodes a whole `.mask`.
inline std::vector<std::byte> encode_mask(const formats::bit_span& bits) {
  formats::byte_writer checksums;
  const auto bytes = bits.bytes().first(formats::mask_bit_bytes(bits.size()));
  for (std::size_t at = 0; at < bytes.size(); at += formats::sum_block_bytes) {
    const auto block =
        bytes.subspan(at, std::min<std::size_t>(formats::sum_block_bytes, bytes.size() - at));
    const std::uint32_t checksum = formats::crc32c(block);
    checksums.put(std::as_bytes(std::span(&checksum, 1)));
  }
  const auto header = formats::encode_mask_header(bits.size(), bits.count(0, bits.size()));
  const auto root = formats::mask_root(header, checksums.bytes());
  formats::byte_writer writer;
  writer.put(header);
  writer.put(bytes);
  writer.put(checksums.bytes());
  writer.put(std::as_bytes(std::span(root)));
  return writer.take();
}

/// Encodes a whole `.src`.
/// @pre the preconditions of `src_encoder::append` hold. For a valid `.src`, the `input` of each
/// place must be an index into `inputs`.
inline std::vector<std::byte> encode_src(std::span<const formats::source_place> places,
                                         std::span<const formats::src_input> inputs) {
  formats::src_encoder encoder;
  std::vector<std::byte> payload;
  std::vector<std::byte> directory;
  for (const auto& place : places) encoder.append(place, payload, directory);
  const auto inputs_part = formats::encode_src_inputs(inputs);
  formats::byte_writer writer;
  writer.put(formats::encode_src_header(encoder.save(), inputs, inputs_part.size()));
  writer.put(payload);
  writer.put(directory);
  writer.put(inputs_part);
  return writer.take();
}

}  // namespace millrace::test
