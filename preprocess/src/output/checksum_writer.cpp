// SPDX-License-Identifier: Apache-2.0
#include "output/checksum_writer.hpp"

#include <millrace/formats/detail/sha256.hpp>

#include "input/read_back.hpp"

namespace millrace::preprocess {

using formats::sum_block_bytes;
using formats::sum_header_bytes;

checksum_writer::checksum_writer(const std::filesystem::path& path, io::atomic_file::start how,
                                 const state& from)
    : file_(path, how), bin_(from) {
  if (how == io::atomic_file::start::afresh) {
    file_.append(formats::encode_sum_header(0, 0));  // a placeholder; finish() overwrites it
  } else {
    cut_back(file_, sum_header_bytes + 4 * (from.size / sum_block_bytes));
  }
}

void checksum_writer::go_back(const state& to) {
  file_.resize(sum_header_bytes + 4 * (to.size / sum_block_bytes));
  bin_ = formats::block_checksums(to);
}

void checksum_writer::add(std::span<const std::byte> bytes) {
  bin_.add(bytes, completed_);
  append();
}

void checksum_writer::append() {
  if (completed_.empty()) return;
  file_.append(std::as_bytes(std::span(completed_)));
  completed_.clear();
}

std::string checksum_writer::finish(const io::atomic_file& idx, std::uint32_t version,
                                    const stop_flag& stop) {
  bin_.finish(completed_);
  formats::block_checksums blocks;
  read_back(idx, 0, idx.size_bytes(), [&](auto bytes) {
    stop.check();
    blocks.add(bytes, completed_);
  });
  blocks.finish(completed_);
  append();
  return complete_sum(file_, bin_.save().size, idx.size_bytes(), version);
}

std::string complete_sum(io::atomic_file& sum, std::uint64_t bin_bytes, std::uint64_t idx_bytes,
                         std::uint32_t version) {
  io::pwrite_all(sum.fd(), formats::encode_sum_header(bin_bytes, idx_bytes, version), 0,
                 sum.partial_path());
  formats::sha256 root;
  read_back(sum, 0, sum.size_bytes(), [&](auto bytes) { root.update(bytes); });
  const auto digest = root.finish();
  sum.append(std::as_bytes(std::span(digest)));
  return root.hex();
}

}  // namespace millrace::preprocess
