// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/serve/credentials.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "api/http/http.hpp"
#include "api/os/descriptor.hpp"
#include "api/os/file.hpp"
#include "api/os/random.hpp"

namespace vfmgr::serve {
namespace {

constexpr std::size_t secret_bytes = 32;
constexpr std::size_t token_length_max = 240;  // must fit into an HTTP header

tl::unexpected<Error> cant_write(std::string const& path, char const* call) {
    return fail({Problem::kernel_refused,
                 fmt::format("{} can't be created", path),
                 "make its folder writable, or name another one with --state",
                 {errno_cause(call, errno)}});
}

Result<void> make_folder(std::string const& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    errno = error.value();
    if (error || ::chmod(folder.c_str(), 0700) != 0) return cant_write(folder, "mkdir");
    return {};
}

Result<void> make_token(std::string const& file) {
    auto const token = "vfr_" + random_hex(secret_bytes) + "\n";
    FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return cant_write(file, "open");
    if (::write(fd.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size()))
        return cant_write(file, "write");
    return {};
}

}  // namespace

Result<std::string> read_token_file(std::string const& file) {
    auto const read = read_file(file);
    if (!read)
        return fail(Problem::not_found, fmt::format("the token file {} can't be read", file),
                    "name a readable file that holds the responder's token");
    auto const& text = *read;
    constexpr auto blanks = " \t\r\n";
    auto const begin = text.find_first_not_of(blanks);
    if (begin == std::string::npos || text.size() > token_length_max)
        return fail(Problem::invalid_request, fmt::format("{} holds no token", file),
                    "name a file with the responder's token and nothing else");
    return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

Result<Credentials> credentials_in(std::string const& folder, std::string const& token_file,
                                   std::string const& listen) {
    Credentials found{folder + "/responder.crt",
                      folder + "/responder.key",
                      {},
                      token_file.empty() ? folder + "/responder.token" : token_file,
                      {}};
    VFMGR_CHECK(make_folder(folder));
    std::error_code ignored;
    if (!std::filesystem::exists(found.certificate_file, ignored))
        VFMGR_CHECK(http::make_self_signed(found.certificate_file, found.key_file, {listen}));
    if (token_file.empty() && !std::filesystem::exists(found.token_file, ignored))
        VFMGR_CHECK(make_token(found.token_file));
    VFMGR_TRY(found.fingerprint, http::certificate_fingerprint(found.certificate_file));
    VFMGR_TRY(found.token, read_token_file(found.token_file));
    return found;
}

}  // namespace vfmgr::serve
