// SPDX-License-Identifier: Apache-2.0
#include "service/listen_locally.hpp"

#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <string_view>

namespace vfmgr {

Result<void> listen_locally(UnixSettings const& unix_socket, http::Server& server,
                            http::Handler const& handler) {
    char** names = nullptr;
    int const count = sd_listen_fds_with_names(0, &names);
    bool inherited = false;
    for (int i = 0; i < count; ++i) {
        bool const local = std::string_view(names[i]) == "local";
        free(names[i]);
        if (!local) continue;
        VFMGR_CHECK(server.listen(http::InheritedListen{SD_LISTEN_FDS_START + i}, handler));
        inherited = true;
    }
    free(static_cast<void*>(names));
    if (inherited) return {};
    return server.listen(http::UnixListen{unix_socket.path, unix_socket.group, 0660}, handler);
}

}  // namespace vfmgr
