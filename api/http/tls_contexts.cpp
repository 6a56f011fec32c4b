// SPDX-License-Identifier: Apache-2.0
#include "api/http/tls_contexts.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace vfmgr::http {

TlsContexts::Stamp TlsContexts::stamp_of(std::string const& file) {
    struct stat status{};
    if (file.empty() || ::stat(file.c_str(), &status) != 0) return {};
    return {status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec};
}

Result<std::shared_ptr<SSL_CTX>> TlsContexts::of(TlsTarget const& target) {
    VFMGR_CHECK(check_form_of_pins(target));
    Files const files{target.ca_file, target.certificate_file, target.key_file};
    // Before they are read: a file that changes meanwhile is read again the next time.
    std::array<Stamp, 3> stamps;
    std::ranges::transform(files, stamps.begin(), stamp_of);
    auto const kept = kept_.find(files);
    if (kept != kept_.end() && kept->second.stamps == stamps) return kept->second.context;
    auto made = client_context(target);
    if (!made && kept != kept_.end()) return kept->second.context;
    if (!made) return fail(std::move(made).error());
    std::shared_ptr<SSL_CTX> context(std::move(*made));
    kept_.insert_or_assign(files, Kept{stamps, context});
    return context;
}

}  // namespace vfmgr::http
