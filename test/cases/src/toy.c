/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose calls test/recipes/library.patch hooks: toyA calls toyB, as a library may. */
struct toy {
    int size;
};

int toyA(struct toy *toy, const void *from, unsigned long bytes);
int toyB(int how);

int toyB(int how)
{
    return how;
}

int toyA(struct toy *toy, const void *from, unsigned long bytes)
{
    if (!from)
        return 3;
    toy->size = (int)bytes / 2;
    return toyB(0);
}
