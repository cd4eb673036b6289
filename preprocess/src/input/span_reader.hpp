// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "input/byte_block.hpp"

namespace millrace::preprocess {

/// If `block` carries a span, reads the text of that span into the block. Any thread may call this.
///
/// @throws io_error, format_error  as byte_source::read. Also format_error if the file became
///                                 shorter or longer.
/// @throws line_abandoned          the run was asked to stop during a giant line.
void read_span(byte_block& block, const read_limits& limits);

}  // namespace millrace::preprocess
