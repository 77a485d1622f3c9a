/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/perfetto_tracks.h"

void perfetto_tracks_release(struct perfetto_tracks *t)
{
    key_map_release(&t->known);
    text_numbers_release(&t->counter_names);
}

/* Is there such a track? Else it is made, to be described. */
static uint64_t find_track(struct perfetto_tracks *t, struct key key, bool *is_new)
{
    uint64_t uuid = key_map_get(&t->known, key);
    *is_new = !uuid;
    if (uuid)
        return uuid;
    t->failed |= key_map_set(&t->known, key, ++t->count) < 0;
    return t->count;
}

uint64_t perfetto_track(struct perfetto_tracks *t, enum track kind, int64_t pid, int64_t tid,
                        unsigned field, struct json_piece text)
{
    struct packet *p = &t->packets->part;
    bool is_new, is_thread = kind == TRACK_OF_THREAD;
    uint64_t uuid = find_track(t, (struct key){kind, (uint64_t)pid, (uint64_t)tid}, &is_new);
    if (!is_new && !text.length)
        return uuid;
    size_t packet = track_packet_open(t->packets);
    size_t opened = packet_open(p, PACKET_TRACK_DESCRIPTOR);
    packet_number(p, TRACK_UUID, uuid);
    size_t row = packet_open(p, is_thread ? TRACK_THREAD : TRACK_PROCESS);
    packet_number(p, is_thread ? THREAD_DESCRIPTOR_PID : PROCESS_PID, (uint64_t)pid);
    if (is_thread)
        packet_number(p, THREAD_DESCRIPTOR_TID, (uint64_t)tid);
    if (text.length)
        packet_string(p, field, text);
    packet_close(p, row);
    packet_close(p, opened);
    track_packet_close(t->packets, packet);
    return uuid;
}

uint64_t perfetto_counter(struct perfetto_tracks *t, int64_t pid, struct json_piece name,
                          struct json_piece key)
{
    char text[256];
    bool is_new;
    if (name.length + key.length > sizeof text)
        return 0;
    size_t length = json_unescape(name, text);
    text[length++] = ' ';
    length += json_unescape(key, text + length);
    uint32_t number = text_number(&t->counter_names, text, length, &is_new);
    uint64_t parent = perfetto_track(t, TRACK_OF_PROCESS, pid, 0, 0, (struct json_piece){0});
    uint64_t uuid = find_track(t, (struct key){TRACK_OF_COUNTER, (uint64_t)pid, number}, &is_new);
    if (!is_new)
        return uuid;
    struct packet *p = &t->packets->part;
    size_t packet = track_packet_open(t->packets);
    size_t opened = packet_open(p, PACKET_TRACK_DESCRIPTOR);
    packet_number(p, TRACK_UUID, uuid);
    packet_number(p, TRACK_PARENT, parent);
    packet_bytes(p, TRACK_NAME, text, length);
    packet_close(p, packet_open(p, TRACK_COUNTER));
    packet_close(p, opened);
    track_packet_close(t->packets, packet);
    return uuid;
}
