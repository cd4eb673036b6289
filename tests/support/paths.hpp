// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// Paths of test data and temporary folders.
namespace millrace::test {

/// Return the source tree and the build folder of this test. paths.cpp, which defines both, is the
/// only source that contains these paths. Therefore, several checkouts can share the compiled
/// objects of all other sources in ccache.
std::filesystem::path source_folder();
std::filesystem::path build_folder();

/// Returns the path of tests/golden/NAME in the source tree.
inline std::filesystem::path golden(std::string_view name) {
  return source_folder() / "tests/golden" / name;
}

/// Returns the path of a program of this build, e.g. program("preprocess_data").
inline std::filesystem::path program(std::string_view name) {
  return build_folder() / "bin" / name;
}

/// Returns the path of the library that replaces NVIDIA's libcufile in tests.
inline std::filesystem::path fake_cufile() {
  return build_folder() / "tests/libfake_cufile.so";
}

/// Returns the folder with large vocabularies and corpora, or an empty path if it does not exist.
/// `MILLRACE_SHARED` names the folder; without that variable, it is `shared` next to the source
/// tree. Tests that need the folder are skipped if it does not exist:
///
///     const auto shared = shared_folder();
///     if (shared.empty()) GTEST_SKIP() << no_shared_folder;
inline std::filesystem::path shared_folder() {
  const char* given = std::getenv("MILLRACE_SHARED");
  const std::filesystem::path folder =
      given != nullptr ? std::filesystem::path(given) : source_folder() / "../shared";
  return std::filesystem::exists(folder / "tokenizers") ? folder : std::filesystem::path();
}
inline constexpr const char* no_shared_folder =
    "needs vocabularies and corpora in ../shared (or $MILLRACE_SHARED), which is absent";

/// Returns a folder in memory if the machine has one, otherwise the usual temporary folder. Tests
/// that sync often are faster in memory.
inline std::filesystem::path quick_folder() {
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
}

/// A new folder. The destructor removes the folder and its contents.
class temp_folder {
 public:
  explicit temp_folder(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "millrace-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + name);
    path_ = name;
  }
  temp_folder(const temp_folder&) = delete;
  temp_folder& operator=(const temp_folder&) = delete;
  ~temp_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace millrace::test
