// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <millrace/tokenizer/tokenizer.hpp>

#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "record/block_encoder.hpp"

namespace millrace::preprocess {

/// How a preview shows which tokens are trained.
enum class preview_marks : std::uint8_t {
  colors,    ///< trained tokens in color, the others faint
  brackets,  ///< runs of trained tokens between [[ and ]]
};

/// Returns the conversation in one line of the inputs, as the text of its tokens with the trained
/// ones marked, under a line that says where it is and how many tokens it has.
///
/// @param encoding  of conversations
/// @param line      number of the line, from 1, over all inputs
/// @throws error  the record is bad, the line is blank, or there are fewer lines.
/// @throws io_error, format_error  an input cannot be read.
std::string preview(const tokenizer::tokenizer& tokenizer, encoder_options encoding,
                    std::span<const input_file> inputs, const read_limits& limits,
                    std::int64_t line, preview_marks marks);

}  // namespace millrace::preprocess
