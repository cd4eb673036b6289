// SPDX-License-Identifier: Apache-2.0
#include "merge/merged_dataset.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/checksum_writer.hpp"
#include "process/fault_point.hpp"

namespace millrace::preprocess {
merged_dataset::merged_dataset(const std::filesystem::path& prefix, const merged_layout& layout,
                               std::span<const std::filesystem::path> parts,
                               const merged_sidecars& sidecars, std::string_view advice,
                               const stop_flag& stop)
    : paths_(prefix), layout_(layout), plan_(sidecars), bin_(paths_.bin), idx_(paths_.idx) {
  const auto afresh = io::atomic_file::start::afresh;
  if (plan_.sum) sum_.emplace(paths_.of(sidecar::sum));
  if (plan_.src) src_.emplace(paths_.of(sidecar::src), afresh);
  if (plan_.bad) bad_.emplace(paths_.of(sidecar::bad));
  if (plan_.mask) mask_.emplace(io::atomic_file(paths_.of(sidecar::mask)));
  reserve_all(claims(parts), prefix, "the merged dataset", advice, stop);
  bin_.resize(layout.total.bin_bytes);
  idx_.resize(layout.idx_bytes());
  if (sum_) {  // without the root, which complete_sum() appends later
    sum_->resize(sum_bytes(layout.total.bin_bytes, layout.idx_bytes()) - formats::sum_root_bytes);
  }
}

std::vector<room_claim> merged_dataset::claims(std::span<const std::filesystem::path> parts) {
  std::vector<room_claim> all = {{&bin_, layout_.total.bin_bytes}, {&idx_, layout_.idx_bytes()}};
  if (sum_) all.push_back({&*sum_, sum_bytes(layout_.total.bin_bytes, layout_.idx_bytes())});
  if (src_) {
    all.push_back({&src_->file(), bytes_of_all(parts, sidecar::src)});
    all.push_back({&src_->directory(),
                   formats::src_group_bytes * formats::src_group_count(layout_.total.documents)});
  }
  if (bad_) all.push_back({&*bad_, bytes_of_all(parts, sidecar::bad)});
  if (mask_) {
    all.push_back({&mask_->file(), formats::mask_bytes(layout_.total.bin_bytes /
                                                       formats::size_bytes(layout_.type))});
  }
  if (plan_.meta) all.push_back({nullptr, formats::meta_bytes(*plan_.meta)});
  return all;
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
  if (mask_) work(mask_->file());
}

void merged_dataset::append_sidecars(std::span<const std::filesystem::path> parts,
                                     const stop_flag& stop) {
  std::vector<formats::src_input> inputs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const dataset_paths part(parts[i]);
    if (src_) append_places(part, plan_.parts[i], plan_.changes[i].shift, *src_, inputs, stop);
    if (bad_) append_bad_lines(part, plan_.parts[i], plan_.changes[i], *bad_, stop);
    if (mask_) {
      stop.check();
      const io::unique_fd bin = io::open_read_only(part.bin);
      const std::uint64_t tokens =
          io::regular_file_size(bin, part.bin) / formats::size_bytes(layout_.type);
      const part_mask mask(part.of(sidecar::mask), tokens);
      mask_->append(mask.bits(), 0, mask.bits().size());
    }
  }
  if (src_) src_->finish(inputs);
}

void merged_dataset::finish(const stop_flag& stop) {
  // Free reserved space that was not needed.
  if (src_) src_->file().resize(src_->file().size_bytes());
  if (bad_) bad_->resize(bad_->size_bytes());
  const std::string mask_root = mask_ ? mask_->finish() : std::string();
  std::string root;
  if (sum_) root = complete_sum(*sum_, layout_.total.bin_bytes, layout_.idx_bytes(), *plan_.sum);
  if (plan_.meta) {
    formats::dataset_meta meta = *plan_.meta;
    if (!root.empty()) meta.sum_root = root;
    if (meta.mask) meta.mask->root = mask_root;
    const std::string json = to_json(meta);
    meta_.emplace(paths_.of(sidecar::meta));
    meta_->append(std::as_bytes(std::span(json)));
  }
  for_each_file([&](io::atomic_file& file) {
    stop.check();
    fault_point("sync");
    file.sync();
  });
}

void merged_dataset::keep() noexcept {
  for_each_file([](io::atomic_file& file) { file.keep(); });
}

sidecar_set merged_dataset::sidecars() const noexcept {
  return {meta_.has_value(), sum_.has_value(), src_.has_value(), bad_ && bad_->size_bytes() != 0,
          mask_.has_value()};
}

}  // namespace millrace::preprocess
