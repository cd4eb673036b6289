// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_index_view.hpp>

#include <memory>
#include <utility>
#include <variant>

#include <millrace/dataset/detail/megatron/gpt_index.hpp>

namespace millrace::dataset {

MILLRACE_INLINE gpt_index_view view_of(gpt_index index) {
  const auto owner = std::make_shared<const gpt_index>(std::move(index));
  gpt_index_view view;
  view.document = {index_numbers::type::int32, owner->document.bytes()};
  view.sample = {
      owner->sample.index() == 0 ? index_numbers::type::int32 : index_numbers::type::int64,
      std::visit([](const auto& array) { return array.bytes(); }, owner->sample)};
  view.shuffle = {
      owner->shuffle.index() == 0 ? index_numbers::type::uint32 : index_numbers::type::int64,
      std::visit([](const auto& array) { return array.bytes(); }, owner->shuffle)};
  view.owner = owner;
  return view;
}

}  // namespace millrace::dataset
