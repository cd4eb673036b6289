// SPDX-License-Identifier: Apache-2.0
#include "mpi/parallel_merge.hpp"

#include <span>
#include <string>
#include <vector>

#include "merge/merge_input.hpp"
#include "merge/place_part.hpp"
#include "output/written_meta.hpp"
#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

// Returns this rank's share of consecutive parts.
std::span<const std::filesystem::path> own(const rank_group& ranks,
                                           const std::vector<std::filesystem::path>& parts) {
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const auto size = static_cast<std::size_t>(ranks.size());
  const std::size_t begin = parts.size() * rank / size;
  return std::span(parts).subspan(begin, parts.size() * (rank + 1) / size - begin);
}

}  // namespace

void parallel_merge::run() {
  end_at_budget();
  ranks_.together([&] { measure_own_parts(); });
  dataset_extent mine;
  for (const dataset_extent& extent : extents_) mine += extent;
  before_ = ranks_.before(mine);
  plan_.layout.total = ranks_.total(mine);
  ranks_.together([&] { plan_whole(); });
  ranks_.share(plan_);
  ranks_.together([&] { place_own_parts(); });
  const auto bin = ranks_.gather(std::span<const block_piece>(target_->bin().pieces));
  const auto idx = ranks_.gather(std::span<const block_piece>(target_->idx().pieces));
  ranks_.together([&] {
    if (!ranks_.is_first()) return;
    if (plan_.checksums) target_->put_joined(bin, idx);
    finish();
  });
}

void parallel_merge::end_at_budget() {
  std::uint64_t kept = parts_.size();
  std::vector<char> last;  // the path of the last part
  ranks_.together([&] {
    if (!ranks_.is_first() || !have_budget(parts_)) return;
    remove_merge_folders(prefix_);
    folder_.emplace(io::parent_folder(prefix_), merge_folder(prefix_));
    const auto used = within_budget(parts_, folder_->path(), stop_).prefixes;
    kept = used.size();
    const std::string path = used.back().string();
    last.assign(path.begin(), path.end());
  });
  ranks_.share(kept);
  ranks_.share(last);
  parts_.resize(kept);
  if (!last.empty()) parts_.back() = std::string(last.begin(), last.end());
}

void parallel_merge::measure_own_parts() {
  for (const auto& prefix : own(ranks_, parts_)) {
    const merge_input part(prefix);
    expect_meta_of(part, read_metas(std::span(&prefix, 1)).front());
    extents_.push_back(extent_of(part.view()));
  }
}

void parallel_merge::plan_whole() {
  if (!ranks_.is_first()) return;
  sidecars_ = plan_sidecars(parts_);
  plan_.layout.type = sidecars_.meta.value().type;
  plan_.checksums = sidecars_.sum.has_value();
  whole_ = std::make_unique<merged_dataset>(
      prefix_, plan_.layout, parts_, sidecars_,
      "nothing was copied yet; free disk space, then run the command again with --resume", stop_);
}

void parallel_merge::place_own_parts() {
  target_ = std::make_unique<merge_target>(dataset_paths(prefix_), plan_.layout, plan_.checksums);
  if (ranks_.is_first()) target_->write_frame();
  std::size_t i = 0;
  dataset_extent before = before_;
  for (const auto& prefix : own(ranks_, parts_)) {
    stop_.check();
    fault_point("place");
    place_part(reopen(prefix, extents_[i]), before, *target_, stop_);
    before += extents_[i++];
  }
  target_->sync(stop_);
}

void parallel_merge::finish() {
  stop_.check();
  whole_->append_sidecars(parts_, stop_);
  whole_->finish(stop_);
}

}  // namespace millrace::preprocess
