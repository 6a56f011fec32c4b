// SPDX-License-Identifier: Apache-2.0
// etcd by gRPC. Owned by run(); any thread. It has no thread of its own, but gRPC has.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "service/fleet/etcd/etcd.hpp"

namespace vfmgr::fleet {

struct EtcdPaces {
    std::chrono::milliseconds connect{3'000};  // to one member, its TLS handshake included
    // What a read waits for one member before it is sent to another. A paused member holds its
    // connections open and answers nothing.
    std::chrono::milliseconds read{3'000};
    // HTTP/2 pings. A member of etcd ends connections that have them more often than every 5 s
    // (--grpc-keepalive-min-time).
    std::chrono::milliseconds ping_every{10'000};
    std::chrono::milliseconds ping_answer{5'000};
    // A watch on which nothing has come for so long asks for a sign of life, and ends if none
    // comes.
    std::chrono::milliseconds watch_silence{10'000};
    std::chrono::milliseconds watch_answer{5'000};
};

struct EtcdMembers {
    // "https://10.0.0.1:2379", all members. http:// only if all are: then nothing is encrypted.
    std::vector<std::string> endpoints;
    std::string prefix;  // put before each key: "/vfmgr/"
    // PEM. Read again for each connection, so that a renewed certificate is used.
    std::string ca_file;
    std::string certificate_file;  // its CN is etcd's user
    std::string key_file;
    EtcdPaces paces{};
};

// Fails with invalid_request, which names the setting. Connects when it is first used.
[[nodiscard]] Result<std::unique_ptr<Etcd>> grpc_etcd(EtcdMembers settings);

}  // namespace vfmgr::fleet
