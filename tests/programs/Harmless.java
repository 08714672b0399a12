// A little of what programs in Java do: threads that write and read files of their own, and status 3.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;

public class Harmless {
    public static void main(String[] args) throws Exception {
        int sum = IntStream.range(0, 8).parallel().map(Harmless::lines).sum();
        System.out.println("lines " + sum);
        System.exit(3);
    }

    static int lines(int number) {
        try {
            Path path = Path.of("lines." + number);
            Files.write(path, List.of("one", "two", "three"));
            return Files.readAllLines(path).size();
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
