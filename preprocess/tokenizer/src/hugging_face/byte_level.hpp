// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include <simdjson.h>

#include "composed/interfaces.hpp"
#include "hugging_face/byte_level_plan.hpp"
#include "hugging_face/read_model.hpp"

namespace millrace::tokenizer::detail {

/// Creates the fast engine for a byte-level model with a well-known pattern. Returns null for other
/// models, which need the general engine.
/// @param model  If an engine is returned, the merges and the index of the model have been freed,
///               because they would use as much memory as the engine's copies. Its tokens are
///               unchanged.
std::unique_ptr<const section_engine> make_byte_level_engine(model_file& model,
                                                             const byte_level_plan& plan);

/// The first byte that occurs in UTF-8 but whose spelling in the byte alphabet is not a token of
/// `model`. If there is no such byte, std::nullopt.
std::optional<unsigned> missing_byte(const model_file& model);

}  // namespace millrace::tokenizer::detail
