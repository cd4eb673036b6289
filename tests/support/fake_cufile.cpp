// SPDX-License-Identifier: Apache-2.0
/// Replaces libcuda.so.1 and libcufile.so.0, so that code that calls these libraries can run on a
/// machine without a GPU. This library reads files with ordinary reads. Environment variables
/// control it:
///
///   FAKE_CUDA     number of devices (default: 1), or "broken", which makes cuInit fail
///   FAKE_CUFILE   a list of these words:
///                 no_start    the driver does not open
///                 no_handles  no file can be registered
///                 no_reads    every read after the first returns -5030
///                 short       a read returns about a third of the requested bytes
///                 errno       reads fail with EIO
///                 module      the kernel module is present
///                 p2p         peer-to-peer transfers are supported
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <millrace/loader/detail/io/cufile_abi.hpp>

using namespace millrace::loader;  // NOLINT: a program of its own

namespace {

bool told(const char* word) {
  const char* const words = std::getenv("FAKE_CUFILE");  // NOLINT(concurrency-mt-unsafe)
  return words != nullptr && std::strstr(words, word) != nullptr;
}

struct known_file {
  int fd;
};

std::atomic<int> handles{0};
std::atomic<int> reads{0};

}  // namespace

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the libraries that this one replaces chose the names

int cuInit(unsigned) {
  const char* const devices = std::getenv("FAKE_CUDA");  // NOLINT(concurrency-mt-unsafe)
  return devices != nullptr && std::strcmp(devices, "broken") == 0 ? 100 : 0;
}

int cuDeviceGetCount(int* count) {
  const char* const devices = std::getenv("FAKE_CUDA");  // NOLINT(concurrency-mt-unsafe)
  *count = devices == nullptr ? 1 : std::atoi(devices);  // NOLINT
  return 0;
}

cufile_abi::error cuFileGetVersion(int* version) {
  *version = 1200;
  return {0, 0};
}

cufile_abi::error cuFileDriverOpen() {
  reads = 0;
  return told("no_start") ? cufile_abi::error{5001, 0} : cufile_abi::error{0, 0};
}

cufile_abi::error cuFileDriverClose_v2() {  // NOLINT: its name
  if (handles != 0) std::abort();           // a handle was still registered
  return {0, 0};
}

cufile_abi::error cuFileDriverGetProperties(cufile_abi::driver_properties* properties) {
  std::memset(properties, 0, sizeof *properties);
  properties->kernel_module.major = told("module") ? 2 : 0;
  properties->features = told("p2p") ? cufile_abi::has_p2p : 0;
  return {0, 0};
}

cufile_abi::error cuFileHandleRegister(cufile_abi::handle* handle,
                                       cufile_abi::descriptor* descriptor) {
  if (told("no_handles") || descriptor->type != cufile_abi::is_descriptor) return {5008, 0};
  // Use malloc, as a C library does, because tests make operator new fail.
  auto* const known = static_cast<known_file*>(std::malloc(sizeof(known_file)));  // NOLINT
  if (known == nullptr) return {5011, 0};
  known->fd = descriptor->file.fd;
  *handle = known;
  ++handles;
  return {0, 0};
}

void cuFileHandleDeregister(cufile_abi::handle handle) {
  std::free(handle);  // NOLINT
  --handles;
}

::ssize_t cuFileRead(cufile_abi::handle handle, void* base, std::size_t bytes, ::off_t file_offset,
                     ::off_t base_offset) {
  if (told("errno")) {
    errno = EIO;
    return -1;
  }
  if (told("no_reads") && ++reads > 1) return -5030;
  const std::size_t most = told("short") ? bytes / 3 + 1 : bytes;
  // Open the file again for buffered reads: the given descriptor is for direct reads, but `base`
  // may be unaligned.
  char again[32];  // NOLINT
  (void)std::snprintf(again, sizeof again, "/proc/self/fd/%d",
                      static_cast<known_file*>(handle)->fd);
  char* const to = static_cast<char*>(base) + base_offset;
  std::FILE* const file = std::fopen(again, "rb");
  if (file == nullptr) return -1;
  (void)std::fseek(file, file_offset, SEEK_SET);
  const std::size_t n = std::fread(to, 1, most, file);
  (void)std::fclose(file);
  return static_cast<::ssize_t>(n);
}
// NOLINTEND(readability-identifier-naming)
}
