// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include <simdjson.h>

#include "composed/interfaces.hpp"
#include "hugging_face/byte_level_plan.hpp"
#include "hugging_face/read_model.hpp"

namespace millrace::tokenizer::detail {

/// The fast engine, for models that work on bytes with a pattern that is known by name; null for
/// others, which the general one takes.
/// @param model  if there is an engine, its tokens are left as they were, its merges and its index
///               gone: they would take as much memory as what is made of them
std::unique_ptr<const section_engine> make_byte_level_engine(model_file& model,
                                                             const byte_level_plan& plan);

/// The bytes that UTF-8 has and `model` has no token for, as the byte alphabet spells them: the
/// first of them, or nothing.
std::optional<unsigned> missing_byte(const model_file& model);

}  // namespace millrace::tokenizer::detail
