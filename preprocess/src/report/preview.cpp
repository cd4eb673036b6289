// SPDX-License-Identifier: Apache-2.0
#include "report/preview.hpp"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/terminal.hpp>
#include <millrace/command/text.hpp>
#include <millrace/error.hpp>

#include "input/block_readers.hpp"
#include "input/block_source.hpp"
#include "input/line_ends.hpp"
#include "record/encoded_block.hpp"

namespace millrace::preprocess {
namespace {

struct found_line {
  std::string where;  ///< as FILE:LINE
  std::string text;
};

// Returns a line of the inputs, counted from 1 over all of them.
found_line find_line(std::span<const input_file> inputs, const read_limits& limits,
                     std::int64_t wanted) {
  block_source source(inputs, {.end = {inputs.size(), 0}}, limits);
  std::int64_t count = 0;
  std::int64_t before_input = 0;
  std::size_t input = 0;
  row_text rows;
  for (byte_block block; source.next(block);) {
    read_span(block, limits, rows);
    if (block.input != input) before_input = count;
    input = block.input;
    const std::string path = display_path(inputs[input]).string();
    const std::string where = block.has_rows
                                  ? fmt::format("{}, row {}", path, wanted - before_input - 1)
                                  : fmt::format("{}:{}", path, wanted - before_input);
    do {
      line_splitter lines(block.text());
      for (std::string_view line; lines.next(line);) {
        if (++count == wanted) return {where, std::string(line)};
      }
    } while (read_more_rows(block, limits, rows));
    if (block.giant && ++count == wanted) {
      throw error(fmt::format("{}: the line has more than {} bytes", where, limits.giant_bytes));
    }
  }
  throw config_error(
      fmt::format("--preview {}: the inputs have {}", wanted, command::counted(count, "line")));
}

template <class Id>
std::vector<std::int64_t> ids_of(const encoded_column& column) {
  std::vector<std::int64_t> ids;
  for (std::size_t at = 0; at < column.ids_bytes; at += sizeof(Id)) {
    Id id;
    std::memcpy(&id, column.ids.data() + at, sizeof(Id));
    ids.push_back(id);
  }
  return ids;
}

std::string marked(std::string_view text, bool trained, preview_marks marks) {
  if (marks == preview_marks::brackets) {
    return trained ? fmt::format("[[{}]]", text) : std::string(text);
  }
  const std::string safe = command::for_terminal(text);
  return command::inked(trained ? command::ink::strong : command::ink::faint, safe, true);
}

}  // namespace

std::string preview(const tokenizer::tokenizer& tokenizer, encoder_options encoding,
                    std::span<const input_file> inputs, const read_limits& limits,
                    std::int64_t line, preview_marks marks) {
  const found_line found = find_line(inputs, limits, line);
  encoding.on_bad_record = bad_record_policy::fail;
  encoding.sampler = nullptr;
  const bool is_narrow = encoding.dtype == formats::dtype::uint16;
  byte_block block;
  block.buffer.reserve(found.text.size() + record_parser::padding_bytes, 0);
  std::memcpy(block.buffer.data(), found.text.data(), found.text.size());
  block.text_bytes = found.text.size();
  encoded_block encoded;
  block_encoder(tokenizer, encoding).encode(block, encoded);
  if (!encoded.faults.empty()) {
    throw error(fmt::format("{}: {}", found.where, encoded.faults.front().fault.what));
  }
  if (encoded.counts.documents == 0) {
    throw error(fmt::format("{}: {}", found.where,
                            encoded.counts.overlong != 0 ? "--overlong drop drops this conversation"
                                                         : "the line is blank"));
  }
  const encoded_column& column = encoded.columns.front();
  const auto ids = is_narrow ? ids_of<std::uint16_t>(column) : ids_of<std::int32_t>(column);
  const formats::bit_span bits = column.mask.bits();
  const auto texts = decode_each(tokenizer, ids);
  std::string out =
      fmt::format("{}: {}, of which {} to be predicted{}\n", found.where,
                  command::grouped(std::ssize(ids), "token"),
                  command::grouped(static_cast<std::int64_t>(bits.count(0, bits.size()))),
                  encoded.counts.truncated != 0 ? "; cut to --max-length" : "");
  for (std::size_t i = 0; i < ids.size();) {
    const bool trained = bits[i];
    std::string run;
    for (; i < ids.size() && bits[i] == trained; ++i) run += texts[i];
    out += marked(run, trained, marks);
  }
  return out.ends_with('\n') ? out : out + '\n';
}

}  // namespace millrace::preprocess
