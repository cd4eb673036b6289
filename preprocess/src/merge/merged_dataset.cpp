// SPDX-License-Identifier: Apache-2.0
#include "merge/merged_dataset.hpp"

#include <array>
#include <string>
#include <vector>

#include <millrace/formats/sum.hpp>

#include "merge/merge_space.hpp"
#include "output/checksum_writer.hpp"
#include "run/fault_point.hpp"

namespace millrace::preprocess {

merged_dataset::merged_dataset(const std::filesystem::path& prefix, const merged_layout& layout,
                               const merged_sidecars& sidecars)
    : paths_(prefix), layout_(layout), plan_(sidecars), bin_(paths_.bin), idx_(paths_.idx) {
  using formats::sum_block_count;
  const auto afresh = io::atomic_file::start::afresh;
  if (plan_.sum) sum_.emplace(paths_.of(sidecar::sum));
  if (plan_.src) src_.emplace(paths_.of(sidecar::src), afresh);
  if (plan_.bad) bad_.emplace(paths_.of(sidecar::bad));
  const std::array<known_file, 3> files = {{
      {&bin_, layout.total.bin_bytes},
      {&idx_, layout.idx_bytes()},
      {sum_ ? &*sum_ : nullptr,
       formats::sum_header_bytes +
           4 * (sum_block_count(layout.total.bin_bytes) + sum_block_count(layout.idx_bytes()))},
  }};
  const auto present = std::span(files).first(sum_ ? 3 : 2);
  reserve_whole(prefix, present);
  for (const known_file& each : present) each.file->truncate(each.more_bytes);
}

template <class Work>
void merged_dataset::for_each_file(Work&& work) {
  work(bin_);
  work(idx_);
  for (auto* file : {&sum_, &bad_, &meta_}) {
    if (*file) work(**file);
  }
  if (src_) {
    work(src_->file());
    work(src_->directory());
  }
}

void merged_dataset::append_sidecars(std::span<const std::filesystem::path> parts) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const dataset_paths part(parts[i]);
    if (src_) append_places(part, plan_.parts[i], plan_.changes[i].shift, *src_, names);
    if (bad_) append_bad_lines(part, plan_.changes[i], *bad_);
  }
  if (src_) src_->finish(names);
}

void merged_dataset::finish() {
  std::string root;
  if (sum_) root = complete_sum(*sum_, layout_.total.bin_bytes, layout_.idx_bytes());
  if (plan_.meta) {
    dataset_meta meta = *plan_.meta;
    if (!root.empty()) meta.sum_root = root;
    const std::string json = to_json(meta);
    meta_.emplace(paths_.of(sidecar::meta));
    meta_->append(std::as_bytes(std::span(json)));
  }
  for_each_file([](io::atomic_file& file) {
    fault_point("sync");
    file.sync();
  });
}

void merged_dataset::keep() noexcept {
  for_each_file([](io::atomic_file& file) { file.keep(); });
}

sidecar_set merged_dataset::sidecars() const noexcept {
  return {meta_.has_value(), sum_.has_value(), src_.has_value(), bad_ && bad_->size_bytes() != 0};
}

}  // namespace millrace::preprocess
