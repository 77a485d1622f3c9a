// SPDX-License-Identifier: Apache-2.0

import java.net.ServerSocket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Null pointers and stacks that overflow (SIGSEGV), collections, threads that a real-time signal
 * wakes from accept, a handler, a child. */
public class JavaWork {
    static int field;
    static JavaWork nothing;
    int member;

    static long spin(int n) {
        long x = 1;
        for (int i = 0; i < n; i++)
            x = x * 6364136223846793005L + 1442695040888963407L;
        return x;
    }

    static int fall(int n) {
        return fall(n + 1) + 1;
    }

    static void fault() {
        int nulls = 0, overflows = 0;
        for (int i = 0; i < 20000; i++)
            try {
                field = nothing.member;
            } catch (NullPointerException e) {
                nulls++;
            }
        for (int i = 0; i < 3; i++)
            try {
                fall(0);
            } catch (StackOverflowError e) {
                overflows++;
            }
        System.out.println(nulls + " " + overflows);
    }

    static long work() {
        List<byte[]> kept = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            kept.add(new byte[10000]);
            if (kept.size() > 20)
                kept.clear();
        }
        return spin(3000000);
    }

    static String accept(ServerSocket server, CountDownLatch ready) throws Exception {
        ready.countDown();
        try {
            server.accept();
            return "accepted";
        } catch (SocketException e) {
            return "closed";
        }
    }

    public static void main(String[] arguments) throws Exception {
        fault();
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> sums = new ArrayList<>();
        for (int i = 0; i < 16; i++)
            sums.add(pool.submit(JavaWork::work));
        long sum = 0;
        for (Future<Long> its : sums)
            sum += its.get();
        System.gc();
        System.out.println(sum);
        int closed = 0;
        for (int i = 0; i < 20; i++) {
            ServerSocket server = new ServerSocket(0);
            CountDownLatch ready = new CountDownLatch(1);
            Future<String> woken = pool.submit(() -> accept(server, ready));
            ready.await();
            Thread.sleep(2);
            server.close();
            closed += woken.get().equals("closed") ? 1 : 0;
        }
        AtomicInteger got = new AtomicInteger();
        sun.misc.Signal.handle(new sun.misc.Signal("USR2"), s -> got.incrementAndGet());
        sun.misc.Signal.raise(new sun.misc.Signal("USR2"));
        for (int i = 0; i < 1000 && got.get() == 0; i++)
            Thread.sleep(5);
        Process child = new ProcessBuilder("sh", "-c", "echo child; exit 3").start();
        String text = new String(child.getInputStream().readAllBytes()).trim();
        System.out.println(closed + " " + got.get() + " " + text + " " + child.waitFor());
        System.exit(7);
    }
}
