// SPDX-License-Identifier: Apache-2.0
#include "output/provenance_writer.hpp"

#include "input/read_back.hpp"

namespace millrace::preprocess {
namespace {

std::filesystem::path beside(std::filesystem::path path) {
  path += "-groups";
  return path;
}

}  // namespace

provenance_writer::provenance_writer(const std::filesystem::path& path, io::atomic_file::start how,
                                     const state& from)
    : file_(path, how), directory_(beside(path), how), encoder_(from) {
  if (how == io::atomic_file::start::afresh) {
    file_.append(formats::encode_src_header({}, {}, 0));  // a placeholder; finish() overwrites it
  } else {
    cut_back(file_, formats::src_header_bytes + from.payload_bytes);
    cut_back(directory_, from.directory_bytes());
  }
}

void provenance_writer::append(std::span<const formats::source_place> places) {
  payload_part_.clear();
  directory_part_.clear();
  for (const formats::source_place& place : places) {
    encoder_.append(place, payload_part_, directory_part_);
  }
  file_.append(payload_part_);
  if (!directory_part_.empty()) directory_.append(directory_part_);
}

void provenance_writer::finish(std::span<const formats::src_input> inputs) {
  read_back(directory_, 0, directory_.size_bytes(), [&](auto bytes) { file_.append(bytes); });
  const auto inputs_part = formats::encode_src_inputs(inputs);
  file_.append(inputs_part);
  io::pwrite_all(file_.fd(),
                 formats::encode_src_header(encoder_.save(), inputs, inputs_part.size()), 0,
                 file_.partial_path());
}

}  // namespace millrace::preprocess
