// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/detail/io/cufile_reader.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#if defined(MILLRACE_HAS_URING)
#include "io/uring_reader.hpp"
#endif

#include "support/paths.hpp"

/// Lists all readers. Each of them must pass the conformance tests.
namespace millrace::test {

struct reader_kind {
  std::string name;
  std::function<std::unique_ptr<loader::range_reader>(std::vector<loader::data_file>,
                                                      loader::reader_options)>
      make;
};

inline std::ostream& operator<<(std::ostream& out, const reader_kind& kind) {
  return out << kind.name;
}

template <class Reader>
reader_kind kind_of(std::string name, const loader::reader_options& changed = {}) {
  return {std::move(name),
          [changed](std::vector<loader::data_file> files, loader::reader_options options) {
            options.advice = changed.advice;
            options.gather_threads = changed.gather_threads;
            return std::make_unique<Reader>(std::move(files), std::move(options));
          }};
}

#if defined(MILLRACE_HAS_URING)
inline reader_kind uring_kind(std::string name, const loader::uring_options& ring = {}) {
  return {std::move(name),
          [ring](const std::vector<loader::data_file>& files, loader::reader_options options) {
            return std::make_unique<loader::uring_reader>(files, std::move(options), ring);
          }};
}
#endif

/// A reader that uses the fake of cuFile in tests/support/fake_cufile.cpp, for requests of at least
/// `least_bytes`.
inline reader_kind cufile_kind(std::string name, std::uint64_t least_bytes) {
  return {std::move(name), [least_bytes](const std::vector<loader::data_file>& files,
                                         loader::reader_options options) {
            const loader::cufile_options how{
                {test::fake_cufile(), test::fake_cufile(), "/"}, least_bytes, true};
            return std::make_unique<loader::cufile_reader>(files, std::move(options), how);
          }};
}

/// To add a reader, add a line here.
inline std::vector<reader_kind> reader_kinds() {
  using loader::map_advice;
  return {
    kind_of<loader::pread_reader>("pread"),
        kind_of<loader::pread_reader>("pread_alone", {.gather_threads = 1}),
        kind_of<loader::mmap_reader>("mmap"),
        kind_of<loader::mmap_reader>("mmap_resident", {.advice = map_advice::resident}),
        kind_of<loader::mmap_reader>("mmap_random",
                                     {.gather_threads = 1, .advice = map_advice::random}),
        kind_of<loader::mmap_reader>("mmap_none",
                                     {.gather_threads = 1, .advice = map_advice::none}),
#if defined(MILLRACE_HAS_URING)
        uring_kind("io_uring"),
        uring_kind("io_uring_small",
                   {.depth = 8, .slots = 32, .slot_bytes = 4096, .most_files = 2}),
#endif
        cufile_kind("cufile", std::uint64_t{1} << 20), cufile_kind("cufile_all", 1),
  };
}

}  // namespace millrace::test
