// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "input/byte_block.hpp"
#include "record/record_parser.hpp"
#include "watch/dry_run.hpp"

namespace millrace::preprocess {

sample_encoder make_sample_encoder(const tokenizer::tokenizer& tokenizer, encoder_options options) {
  struct state {
    std::optional<block_encoder> encoder;  // created on first use, to measure its memory
    byte_block block;
    encoded_block encoded;
  };
  const auto token_bytes = static_cast<std::int64_t>(formats::size_bytes(options.dtype));
  options.on_bad_record = bad_record_policy::skip;
  // The state is shared, because a std::function must be copyable.
  return [parts = std::make_shared<state>(), &tokenizer, options = std::move(options),
          token_bytes](std::string_view lines) {
    if (!parts->encoder) parts->encoder.emplace(tokenizer, options);
    parts->block.buffer.reserve(lines.size() + record_parser::padding_bytes, 0);
    std::memcpy(parts->block.buffer.data(), lines.data(), lines.size());
    parts->block.text_bytes = lines.size();
    parts->encoder->encode(parts->block, parts->encoded);
    sampled_counts out;
    out.counts = parts->encoded.counts;
    for (const encoded_column& column : parts->encoded.columns) {
      out.tokens += static_cast<std::int64_t>(column.ids_bytes) / token_bytes;
      out.sequences += static_cast<std::int64_t>(column.lengths.size());
    }
    return out;
  };
}

}  // namespace millrace::preprocess
