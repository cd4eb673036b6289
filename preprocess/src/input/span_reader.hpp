// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "input/byte_block.hpp"

namespace millrace::preprocess {

/// Reads the span that `block` carries, if it carries one. Any thread.
///
/// @throws io_error, format_error  as byte_source::read; the file became shorter or longer.
/// @throws line_abandoned
void read_span(byte_block& block, const read_limits& limits);

}  // namespace millrace::preprocess
